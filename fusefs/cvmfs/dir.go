package cvmfs

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// dirHandle is one open of a directory. go-fuse calls one of its methods at a time.
type dirHandle struct {
	node *node
	list *listing
	pos  int // of the next entry; `.` and `..` come first
}

var (
	_ fs.FileReaddirenter = (*dirHandle)(nil)
	_ fs.FileSeekdirer    = (*dirHandle)(nil)
	_ fs.FileLookuper     = (*dirHandle)(nil)
)

const (
	// dots is how many entries come before those of the listing.
	dots = 2
	// keepDir lets the kernel answer for a directory from what it has read: it does
	// not change.
	keepDir = fuse.FOPEN_CACHE_DIR | fuse.FOPEN_KEEP_CACHE
)

// OpendirHandle opens the directory; it is listed when it is read.
func (n *node) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return &dirHandle{node: n}, keepDir, 0
}

// load lists the directory.
func (d *dirHandle) load(ctx context.Context) syscall.Errno {
	if d.list != nil {
		return 0
	}
	s, err := d.node.enter(ctx)
	if err == nil {
		d.list, err = d.node.repo.list(ctx, s)
	}
	if err != nil {
		return d.node.failed("list", err)
	}
	d.node.repo.ahead.listed(d.list)
	return 0
}

// Readdirent returns the next entry.
func (d *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	if errno := d.load(ctx); errno != 0 {
		return nil, errno
	}
	i := d.pos
	switch {
	case i < dots:
		d.pos++
		return d.dot(i), 0
	case i-dots >= len(d.list.entries):
		return nil, 0
	}
	d.pos++
	e := &d.list.entries[i-dots]
	return &fuse.DirEntry{
		Name: e.name,
		Mode: e.mode,
		Ino:  inode(d.list.path+"/"+e.name, d.list.catalog.mount, e),
		Off:  uint64(i + 1),
	}, 0
}

// dot is the directory itself, or its parent.
func (d *dirHandle) dot(i int) *fuse.DirEntry {
	in := d.node.EmbeddedInode()
	if i == 1 {
		if _, parent := in.Parent(); parent != nil {
			in = parent
		}
	}
	return &fuse.DirEntry{Name: "..."[:i+1], Mode: syscall.S_IFDIR, Ino: in.StableAttr().Ino, Off: uint64(i + 1)}
}

// Lookup answers for an entry that was just read.
func (d *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if errno := d.load(ctx); errno != 0 {
		return nil, errno
	}
	i, ok := d.list.find(name)
	if !ok {
		return nil, syscall.EAGAIN
	}
	return d.node.child(ctx, d.list.spot, &d.list.entries[i], out), 0
}

// Seekdir goes to where an entry ended.
func (d *dirHandle) Seekdir(_ context.Context, off uint64) syscall.Errno {
	d.pos = int(min(off, 1<<40))
	return 0
}
