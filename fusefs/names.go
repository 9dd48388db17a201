package fusefs

import (
	"context"
	"path"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/wire"
)

var (
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeMknoder   = (*node)(nil)
	_ fs.NodeSymlinker = (*node)(nil)
	_ fs.NodeLinker    = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeRmdirer   = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
)

// made makes something with the path of name in the directory, and describes it.
func (n *node) made(ctx context.Context, name string, out *fuse.EntryOut, call func(ctx context.Context, path string) error) (*fs.Inode, syscall.Errno) {
	if n.fs.ro {
		return nil, syscall.EROFS
	}
	o := n.fs.begin(ctx)
	defer o.end()
	err := n.at(o, name, func(path string) error { return call(o, path) })
	if err != nil {
		return nil, errnoFor(err)
	}
	n.madeIn(name)
	st, asked, err := n.lstat(o, name)
	if err != nil {
		return nil, errnoFor(err)
	}
	child := n.fs.child(ctx, &sight{n, name, st, asked, st.IsDir() || st.Nlink == 1})
	if err := child.describe(o, out, &st, asked, n.fs.ttl); err != nil {
		return nil, errnoFor(err)
	}
	return child.EmbeddedInode(), 0
}

// Mkdir makes a directory.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.made(ctx, name, out, func(ctx context.Context, path string) error {
		return n.fs.client.Mkdir(ctx, path, int64(mode&0o7777))
	})
}

// Mknod makes an empty regular file. The protocol has no other kinds.
func (n *node) Mknod(ctx context.Context, name string, mode, _ uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if kind := mode & syscall.S_IFMT; kind != syscall.S_IFREG && kind != 0 {
		return nil, syscall.EPERM
	}
	return n.made(ctx, name, out, func(ctx context.Context, path string) error {
		file, err := n.fs.client.Open(ctx, path, wire.OpenWrite|wire.OpenCreate|wire.OpenExclude, int64(mode&0o7777))
		if err == nil {
			file.StartClose()
		}
		return err
	})
}

// Symlink makes a symbolic link.
func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.made(ctx, name, out, func(ctx context.Context, path string) error {
		return n.fs.client.Symlink(ctx, target, path)
	})
}

// Link gives a file another name.
func (n *node) Link(ctx context.Context, target fs.InodeEmbedder, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	old, ok := target.(*node)
	if !ok {
		return nil, syscall.EXDEV
	}
	return n.made(ctx, name, out, func(ctx context.Context, path string) error {
		if err := old.drain(ctx, nil); err != nil {
			return err
		}
		from, err := old.path()
		if err != nil {
			return err
		}
		err = n.fs.client.Link(ctx, from, path)
		old.changed()
		return err
	})
}

// Unlink removes a name.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, name, n.fs.client.Unlink)
}

// Rmdir removes an empty directory.
func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, name, n.fs.client.Rmdir)
}

func (n *node) remove(ctx context.Context, name string, call func(context.Context, string) error) syscall.Errno {
	if n.fs.ro {
		return syscall.EROFS
	}
	o := n.fs.begin(ctx)
	defer o.end()
	child := n.childNode(name)
	err := n.at(o, name, func(path string) error {
		if child != nil {
			child.secure(o)
		}
		return call(o, path)
	})
	if err != nil {
		return errnoFor(err)
	}
	n.madeIn(name)
	if child != nil {
		child.removed()
	}
	return 0
}

// childNode is the node known by name, or nil.
func (n *node) childNode(name string) *node {
	if in := n.GetChild(name); in != nil {
		return in.Operations().(*node)
	}
	return nil
}

// Rename moves name to newName in another directory, or the same. Of the flags of
// renameat2(2), RENAME_NOREPLACE is known. The caller, rawFS, has locked the tree.
func (n *node) Rename(ctx context.Context, name string, newParent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if n.fs.ro {
		return syscall.EROFS
	}
	dir, ok := newParent.(*node)
	if !ok || flags&^unix.RENAME_NOREPLACE != 0 {
		return syscall.EINVAL
	}
	o := n.fs.begin(ctx)
	defer o.end()
	moved, replaced := n.childNode(name), dir.childNode(newName)
	if moved != nil {
		if err := n.fs.drainMoved(o, moved); err != nil {
			return errnoFor(err)
		}
	}
	if replaced != nil {
		replaced.secure(o)
	}
	if err := n.rename(o, name, dir, newName, flags&unix.RENAME_NOREPLACE != 0, moved); err != nil {
		return errnoFor(err)
	}
	n.madeIn(name)
	dir.madeIn(newName)
	if moved != nil {
		moved.changed()
	}
	if replaced != nil {
		replaced.removed()
	}
	return 0
}

// drainMoved waits for the writes of what is going to move.
func (f *FS) drainMoved(ctx context.Context, n *node) error {
	if n.kind == syscall.S_IFDIR {
		return f.drainBelow(ctx, n)
	}
	return n.drain(ctx, nil)
}

func (n *node) rename(ctx context.Context, name string, dir *node, newName string, keep bool, moved *node) error {
	from, err := n.path()
	if err != nil {
		return err
	}
	to, err := dir.path()
	if err != nil {
		return err
	}
	from, to = path.Join(from, name), path.Join(to, newName)
	if !keep {
		return n.fs.client.Rename(ctx, from, to)
	}
	return n.fs.renameNew(ctx, from, to, moved != nil && moved.kind == syscall.S_IFREG)
}

// renameNew renames where the new name must not exist. The protocol cannot say that,
// but a link can be made only where nothing is. Where that does not do, a directory
// for one, somebody else may take the name after we looked.
func (f *FS) renameNew(ctx context.Context, from, to string, file bool) error {
	if file {
		err := f.client.Link(ctx, from, to)
		if err == nil {
			return f.client.Unlink(ctx, from)
		}
		switch errnoFor(err) {
		case syscall.EEXIST, syscall.ENOENT, syscall.ENOTDIR, syscall.EXDEV, syscall.EINTR, syscall.EIO:
			return err
		}
	}
	_, err := f.client.Lstat(ctx, to)
	switch errnoFor(err) {
	case 0:
		return syscall.EEXIST
	case syscall.ENOENT:
		return f.client.Rename(ctx, from, to)
	}
	return err
}
