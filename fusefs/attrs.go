package fusefs

import (
	"context"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
)

var (
	_ fs.NodeGetxattrer    = (*node)(nil)
	_ fs.NodeSetxattrer    = (*node)(nil)
	_ fs.NodeListxattrer   = (*node)(nil)
	_ fs.NodeRemovexattrer = (*node)(nil)
	_ fs.NodeAccesser      = (*node)(nil)
	_ fs.NodeReadlinker    = (*node)(nil)
)

// rights are answers of the server to access, one bit for each mask.
type rights struct {
	asked, allowed uint8
	until          time.Time
}

// Access answers whether the caller may read, write, or execute. That a thing exists,
// and may be executed or entered, its mode bits tell; what may be read and written
// the server alone knows.
func (n *node) Access(ctx context.Context, mask uint32) syscall.Errno {
	o := n.fs.begin(ctx)
	defer o.end()
	mask &= 7
	if mask&2 != 0 && n.fs.ro {
		return syscall.EROFS
	}
	st, _, err := n.stat(o, nil)
	if err != nil {
		return errnoFor(err)
	}
	if mask&1 != 0 && n.kind == syscall.S_IFREG && st.Mode&0o111 == 0 {
		return syscall.EACCES
	}
	if mask &= 6; mask == 0 {
		return 0
	}
	return n.mayAccess(o, mask)
}

func (n *node) mayAccess(ctx context.Context, mask uint32) syscall.Errno {
	bit := uint8(1) << mask
	n.mu.Lock()
	known := n.rights
	n.mu.Unlock()
	if known.asked&bit != 0 && time.Now().Before(known.until) {
		if known.allowed&bit == 0 {
			return syscall.EACCES
		}
		return 0
	}
	err := n.at(ctx, "", func(path string) error { return n.fs.client.Access(ctx, path, int64(mask)) })
	errno := errnoFor(err)
	if errno != 0 && errno != syscall.EACCES {
		return errno
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !time.Now().Before(n.rights.until) {
		n.rights = rights{until: time.Now().Add(n.fs.ttl)}
	}
	n.rights.asked |= bit
	if errno == 0 {
		n.rights.allowed |= bit
	}
	return errno
}

// target is what a symbolic link says.
type target struct {
	text  string
	state pages // of the link when it was read
}

// Readlink tells a link's target: the one read before where the link is surely the
// same.
func (n *node) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	o := n.fs.begin(ctx)
	defer o.end()
	st, _, err := n.stat(o, nil)
	if err != nil {
		return nil, errnoFor(err)
	}
	n.mu.Lock()
	t := n.target
	n.mu.Unlock()
	if t != nil && sameState(&t.state.state, &st) && t.state.sure() {
		return []byte(t.text), 0
	}
	t = new(target)
	t.state.opened(&st)
	err = n.at(o, "", func(path string) (err error) {
		t.text, err = n.fs.client.Readlink(o, path)
		return err
	})
	if err != nil {
		return nil, errnoFor(err)
	}
	n.mu.Lock()
	n.target = t
	n.mu.Unlock()
	return []byte(t.text), 0
}

// foreign reports whether attributes of that name are not the server's business:
// labels and access lists of this machine.
func foreign(name string) bool {
	return !strings.HasPrefix(name, "user.")
}

// attributes runs call with the node's path, unless its device is known to have no
// extended attributes.
func (n *node) attributes(ctx context.Context, call func(ctx context.Context, path string) error) syscall.Errno {
	f := n.fs
	f.mu.Lock()
	_, plain := f.plain[n.id.dev]
	f.mu.Unlock()
	if plain {
		return syscall.EOPNOTSUPP
	}
	o := f.begin(ctx)
	defer o.end()
	errno := errnoFor(n.at(o, "", func(path string) error { return call(o, path) }))
	if errno == syscall.EOPNOTSUPP {
		f.mu.Lock()
		f.plain[n.id.dev] = struct{}{}
		f.mu.Unlock()
	}
	return errno
}

// Getxattr reads an extended attribute.
func (n *node) Getxattr(ctx context.Context, attr string, dest []byte) (uint32, syscall.Errno) {
	if foreign(attr) {
		return 0, syscall.ENODATA
	}
	var value []byte
	errno := n.attributes(ctx, func(ctx context.Context, path string) (err error) {
		value, err = n.fs.client.Lgetxattr(ctx, path, attr)
		return err
	})
	return deliver(value, dest, errno)
}

// Listxattr lists the names of extended attributes.
func (n *node) Listxattr(ctx context.Context, dest []byte) (uint32, syscall.Errno) {
	var names []byte
	errno := n.attributes(ctx, func(ctx context.Context, path string) error {
		list, err := n.fs.client.Llistxattr(ctx, path)
		for _, name := range list {
			if !foreign(name) {
				names = append(append(names, name...), 0)
			}
		}
		return err
	})
	if errno == syscall.EOPNOTSUPP {
		errno = 0 // nothing there, as far as anybody can tell
	}
	return deliver(names, dest, errno)
}

// deliver copies value into dest, if it fits; a caller without space asks for the
// size.
func deliver(value, dest []byte, errno syscall.Errno) (uint32, syscall.Errno) {
	if errno != 0 {
		return 0, errno
	}
	if len(value) > len(dest) {
		return uint32(len(value)), syscall.ERANGE
	}
	return uint32(copy(dest, value)), 0
}

// Setxattr sets an extended attribute.
func (n *node) Setxattr(ctx context.Context, attr string, data []byte, flags uint32) syscall.Errno {
	switch {
	case n.fs.ro:
		return syscall.EROFS
	case foreign(attr):
		return syscall.EOPNOTSUPP
	}
	defer n.changed()
	return n.attributes(ctx, func(ctx context.Context, path string) error {
		return n.fs.client.Lsetxattr(ctx, path, attr, data, int64(flags))
	})
}

// Removexattr removes an extended attribute.
func (n *node) Removexattr(ctx context.Context, attr string) syscall.Errno {
	switch {
	case n.fs.ro:
		return syscall.EROFS
	case foreign(attr):
		return syscall.ENODATA
	}
	defer n.changed()
	return n.attributes(ctx, func(ctx context.Context, path string) error {
		return n.fs.client.Lremovexattr(ctx, path, attr)
	})
}
