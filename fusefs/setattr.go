package fusefs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

var _ fs.NodeSetattrer = (*node)(nil)

// Setattr sets size, permissions and times. The owner can be set to what it is
// shown as only. The answer is what the server says afterwards, so that it stays the
// same when it is asked again: times are whole seconds there, and those of a link are
// what they were, without an error, which cp and rsync would not forgive.
func (n *node) Setattr(ctx context.Context, fh fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if n.fs.ro {
		return syscall.EROFS
	}
	if !n.mayOwn(in) {
		return syscall.EPERM
	}
	o := n.fs.begin(ctx)
	defer o.end()
	h, _ := fh.(*handle)
	if err := n.drain(o, nil); err != nil {
		return errnoFor(err)
	}
	if err := n.set(o, h, in); err != nil {
		return errnoFor(err)
	}
	st, left, err := n.stat(o, h)
	if err != nil {
		return errnoFor(err)
	}
	n.fill(&out.Attr, &st)
	out.SetTimeout(max(left, brief))
	return 0
}

// mayOwn reports whether the owner and group in in, if any, are the ones shown.
func (n *node) mayOwn(in *fuse.SetAttrIn) bool {
	if uid, ok := in.GetUID(); ok && uid != n.fs.owner.UID {
		return false
	}
	gid, ok := in.GetGID()
	return !ok || gid == n.fs.owner.GID
}

func (n *node) set(ctx context.Context, h *handle, in *fuse.SetAttrIn) error {
	if mode, ok := in.GetMode(); ok {
		if err := n.chmod(ctx, h, mode); err != nil {
			return err
		}
	}
	if size, ok := in.GetSize(); ok {
		if err := n.truncate(ctx, h, int64(size)); err != nil {
			return err
		}
	}
	atime, setA := in.GetATime()
	mtime, setM := in.GetMTime()
	if !setA && !setM || n.kind == syscall.S_IFLNK {
		return nil // the protocol would set the times of what a link leads to
	}
	return n.utime(ctx, h, atime, setA, mtime, setM)
}

func (n *node) chmod(ctx context.Context, h *handle, mode uint32) error {
	defer n.changed()
	if file := n.borrowAny(h); file != nil {
		defer file.giveBack()
		return file.Fchmod(ctx, int64(mode))
	}
	return n.at(ctx, "", func(path string) error { return n.fs.client.Chmod(ctx, path, int64(mode)) })
}

func (n *node) truncate(ctx context.Context, h *handle, size int64) error {
	var err error
	if h != nil && h.writer != nil {
		err = h.file.Load().Ftruncate(ctx, size)
	} else {
		err = n.at(ctx, "", func(path string) error { return n.fs.client.Truncate(ctx, path, size) })
	}
	if err != nil {
		n.changed()
		return err
	}
	n.resized(size)
	return nil
}

// utime sets both times; one that is not given stays.
func (n *node) utime(ctx context.Context, h *handle, atime time.Time, setA bool, mtime time.Time, setM bool) error {
	if !setA || !setM {
		st, _, err := n.stat(ctx, h)
		if err != nil {
			return err
		}
		if !setA {
			atime = time.Unix(st.Atime, 0)
		}
		if !setM {
			mtime = time.Unix(st.Mtime, 0)
		}
	}
	defer n.changed()
	return n.at(ctx, "", func(path string) error { return n.fs.client.Utime(ctx, path, atime, mtime) })
}
