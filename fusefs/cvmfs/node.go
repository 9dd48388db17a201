package cvmfs

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// node is a file, a directory or a link of the mounted repository.
type node struct {
	fs.Inode
	repo  *Repository
	spot  spot // of a directory before it is entered; of anything else its path and catalog
	entry *entry

	mu      sync.Mutex
	entered bool // guarded by mu: spot is that of the content
}

var (
	_ fs.NodeLookuper       = (*node)(nil)
	_ fs.NodeGetattrer      = (*node)(nil)
	_ fs.NodeReadlinker     = (*node)(nil)
	_ fs.NodeAccesser       = (*node)(nil)
	_ fs.NodeStatfser       = (*node)(nil)
	_ fs.NodeGetxattrer     = (*node)(nil)
	_ fs.NodeListxattrer    = (*node)(nil)
	_ fs.NodeOpener         = (*node)(nil)
	_ fs.NodeOpendirHandler = (*node)(nil)
)

// failed logs why a system call fails, and says what it returns.
func (n *node) failed(op string, err error) syscall.Errno {
	errno := errnoFor(err)
	if errno != syscall.ENOENT && errno != syscall.EINTR {
		n.repo.log.Error((&Error{Repo: n.repo.name, Op: op, What: cmp.Or(n.spot.path, "/"), Err: err}).Error())
	}
	return errno
}

// enter returns the spot of the directory's content.
func (n *node) enter(ctx context.Context) (spot, error) {
	n.mu.Lock()
	s, entered := n.spot, n.entered
	n.mu.Unlock()
	if entered || !s.transition {
		return s, nil
	}
	s, err := n.repo.tree.enter(ctx, s)
	if err != nil {
		return s, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spot, n.entered = s, true
	return s, nil
}

// Lookup finds a name in the directory.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	s, err := n.enter(ctx)
	if err != nil {
		return nil, n.failed("look up in", err)
	}
	e, err := n.repo.lookup(ctx, s, name)
	if err != nil {
		return nil, n.failed("look up in", err)
	}
	return n.child(ctx, s, e, out), 0
}

// child returns the node of an entry of the directory, whose content is at s.
func (n *node) child(ctx context.Context, s spot, e *entry, out *fuse.EntryOut) *fs.Inode {
	c := &node{repo: n.repo, spot: s.below(e), entry: e}
	n.repo.fill(e, &out.Attr)
	id := fs.StableAttr{Mode: e.kind(), Ino: inode(c.spot.path, s.catalog.mount, e)}
	out.Attr.Ino = id.Ino
	return n.NewInode(ctx, c, id)
}

// fill tells the kernel what an entry looks like.
func (r *Repository) fill(e *entry, out *fuse.Attr) {
	out.Mode, out.Nlink, out.Size = e.mode, e.links, uint64(e.size)
	out.Uid, out.Gid = e.uid, e.gid
	if r.owner != nil {
		out.Uid, out.Gid = r.owner[0], r.owner[1]
	}
	if e.kind() == unix.S_IFLNK {
		out.Size = uint64(len(expand(e.link, r.variables)))
	}
	out.Rdev = uint32(e.deviceN)
	out.Blocks, out.Blksize = (out.Size+511)/512, 4096
	out.SetTimes(&e.mtime, &e.mtime, &e.mtime)
}

// Getattr answers from the catalog.
func (n *node) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.repo.fill(n.entry, &out.Attr)
	return 0
}

// Readlink expands the variables in the target.
func (n *node) Readlink(context.Context) ([]byte, syscall.Errno) {
	return []byte(expand(n.entry.link, n.repo.variables)), 0
}

// Access lets everybody read everything: it is public, and whoever came so far may.
func (n *node) Access(_ context.Context, mask uint32) syscall.Errno {
	switch {
	case mask&unix.W_OK != 0:
		return syscall.EROFS
	case mask&unix.X_OK != 0 && !n.entry.isDir() && n.entry.mode&0o111 == 0:
		return syscall.EACCES
	}
	return 0
}

// Statfs tells the size of the whole repository; nothing is free.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	var bytes, entries uint64
	err := n.repo.tree.with(ctx, n.repo.root.catalog, func(c *catalog) error {
		bytes, entries = c.totals()
		return nil
	})
	if err != nil {
		return n.failed("statfs", err)
	}
	out.Bsize, out.Frsize = 4096, 4096
	out.Blocks, out.Files, out.NameLen = (bytes+4095)/4096, entries, unix.NAME_MAX
	return 0
}

// Getxattr knows what is known of an entry without any effort.
func (n *node) Getxattr(_ context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	var value string
	switch name {
	case "user.fqrn":
		value = n.repo.name
	case "user.revision":
		value = strconv.FormatUint(n.repo.manifest.revision, 10)
	case "user.root_hash":
		value = n.repo.manifest.catalog.String()
	case "user.hash":
		if n.entry.hashed {
			value = n.entry.object.String()
		}
	}
	switch {
	case value == "":
		return 0, syscall.ENODATA
	case len(dest) < len(value):
		return uint32(len(value)), syscall.ERANGE
	}
	return uint32(copy(dest, value)), 0
}

// Listxattr lists none: what there is does not belong to a copy.
func (n *node) Listxattr(context.Context, []byte) (uint32, syscall.Errno) { return 0, 0 }
