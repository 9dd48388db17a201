package fusefs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

var (
	_ fs.NodeOpener  = (*node)(nil)
	_ fs.NodeCreater = (*node)(nil)
)

// smallFile is up to which size a file that is opened for reading comes along with
// the open, in bytes.
const smallFile = 64 << 10

// openFlags are the letters for the flags of open(2).
func openFlags(flags uint32) wire.OpenFlags {
	var out wire.OpenFlags
	switch flags & syscall.O_ACCMODE {
	case syscall.O_RDONLY:
		out = wire.OpenRead
	case syscall.O_WRONLY:
		out = wire.OpenWrite
	default:
		out = wire.OpenRead | wire.OpenWrite
	}
	for flag, letter := range map[uint32]wire.OpenFlags{
		syscall.O_APPEND: wire.OpenAppend,
		syscall.O_TRUNC:  wire.OpenTruncate,
		syscall.O_CREAT:  wire.OpenCreate,
		syscall.O_EXCL:   wire.OpenExclude,
		syscall.O_DSYNC:  wire.OpenSync,
	} {
		if flags&flag != 0 {
			out |= letter
		}
	}
	return out
}

// Open opens the file with one round trip, which also tells whether the kernel's
// pages of it are still good.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	writes := flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0
	if n.fs.ro && writes {
		return nil, 0, syscall.EROFS
	}
	o := n.fs.begin(ctx)
	defer o.end()
	if err := n.drain(o, nil); err != nil {
		return nil, 0, errnoFor(err)
	}
	if !writes {
		if h := n.openSmall(o, flags); h != nil {
			return h, 0, 0
		}
	}
	fd, err := n.openFile(o, openFlags(flags&^(syscall.O_CREAT|syscall.O_EXCL)))
	if err != nil {
		return nil, 0, errnoFor(err)
	}
	if flags&syscall.O_TRUNC != 0 {
		n.resized(0)
	}
	n.learn(&fd.stat, fd.asked, n.fs.ttl)
	return n.newHandle(fd.file, flags, nil), n.openedAs(&fd.stat), 0
}

// openedAs tells the kernel what to do with its pages of a file that was found in
// the state st, in flags for the answer to its open.
func (n *node) openedAs(st *wire.Stat) uint32 {
	n.mu.Lock()
	keep, wrong := n.pages.opened(st)
	n.mu.Unlock()
	if wrong {
		n.NotifyContent(-1, 0) // attributes only: the size bounds what the kernel reads
	}
	if keep {
		return fuse.FOPEN_KEEP_CACHE
	}
	return 0
}

// openSmall reads a whole file that is believed to be small, instead of opening it.
// It returns nil where that does not serve.
func (n *node) openSmall(ctx context.Context, flags uint32) *handle {
	n.mu.Lock()
	st, _, believed := n.attr.Get()
	cached := n.pages.valid && sameState(&n.pages.state, &st)
	changes := n.data
	n.mu.Unlock()
	if !believed || cached || n.kind != syscall.S_IFREG || st.Size == 0 || st.Size > smallFile || flags&syscall.O_DIRECT != 0 {
		return nil
	}
	buf := make([]byte, st.Size)
	var size int64
	err := n.at(ctx, "", func(path string) (err error) {
		size, err = n.fs.client.GetfileMax(ctx, path, buf)
		return err
	})
	if err != nil || size != st.Size {
		return nil
	}
	n.openedAs(&st)
	n.mu.Lock()
	n.pages.valid = false // the content may be newer than the state
	n.mu.Unlock()
	return n.newHandle(nil, flags, &content{data: buf, mtime: st.Mtime, changes: changes})
}

// Create makes a file and opens it, with one round trip. Where somebody else made it
// first, and the caller did not ask for O_EXCL, that one is opened.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	if n.fs.ro {
		return nil, nil, 0, syscall.EROFS
	}
	o := n.fs.begin(ctx)
	defer o.end()
	fresh := true
	asked := time.Now()
	file, err := n.create(o, name, openFlags(flags)|wire.OpenCreate|wire.OpenExclude, mode)
	if errnoFor(err) == syscall.EEXIST && flags&syscall.O_EXCL == 0 {
		fresh = false
		file, err = n.create(o, name, openFlags(flags)|wire.OpenCreate, mode)
	}
	if err != nil {
		return nil, nil, 0, errnoFor(err)
	}
	n.madeIn(name)
	st := file.Stat()
	child := n.fs.child(ctx, &sight{n, name, st, asked, fresh})
	if !fresh && flags&syscall.O_TRUNC != 0 {
		child.resized(0)
	}
	h := child.newHandle(file, flags, nil)
	if err := child.describe(o, out, &st, asked, n.fs.ttl); err != nil {
		h.close()
		return nil, nil, 0, errnoFor(err)
	}
	return child.EmbeddedInode(), h, child.openedAs(&st), 0
}

func (n *node) create(ctx context.Context, name string, flags wire.OpenFlags, mode uint32) (file *client.File, err error) {
	err = n.at(ctx, name, func(path string) (err error) {
		file, err = n.fs.client.Open(ctx, path, flags, int64(mode&0o7777))
		return err
	})
	return file, err
}

// madeIn tells that names were made in, or removed from, the directory.
func (n *node) madeIn(names ...string) {
	n.dir.Change(names...)
	n.changed()
}
