package fusefs

import (
	"context"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
)

// dirHandle is one open of a directory: a listing, taken when it is first read and
// again after a rewind. go-fuse calls one of its methods at a time.
type dirHandle struct {
	node *node
	list *cache.Listing[wire.Stat]
	pos  int // of the next entry; `.` and `..` come first
}

var (
	_ fs.NodeOpendirHandler = (*node)(nil)
	_ fs.FileReaddirenter   = (*dirHandle)(nil)
	_ fs.FileSeekdirer      = (*dirHandle)(nil)
	_ fs.FileLookuper       = (*dirHandle)(nil)
	_ fs.FileReleasedirer   = (*dirHandle)(nil)
	_ fs.FileFsyncdirer     = (*dirHandle)(nil)
)

// OpendirHandle opens the directory; nothing is asked of the server yet.
func (n *node) OpendirHandle(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return &dirHandle{node: n}, 0, 0
}

// dots is how many entries come before those of the listing.
const dots = 2

// Readdirent returns the next entry. Those that were removed here since the listing
// was taken are left out.
func (d *dirHandle) Readdirent(ctx context.Context) (*fuse.DirEntry, syscall.Errno) {
	if d.list == nil {
		if err := d.load(ctx); err != nil {
			return nil, errnoFor(err)
		}
	}
	for {
		i := d.pos
		d.pos++
		switch {
		case i < dots:
			return d.dot(i), 0
		case i-dots >= len(d.list.Entries):
			d.pos = i
			return nil, 0
		}
		e := &d.list.Entries[i-dots]
		if d.node.dir.Changed(d.list, e.Name) && d.node.GetChild(e.Name) == nil {
			continue
		}
		return &fuse.DirEntry{
			Name: e.Name,
			Mode: uint32(e.Value.Mode),
			Ino:  d.node.fs.ids.number(identOf(&e.Value)),
			Off:  uint64(i + 1),
		}, 0
	}
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

// load takes a listing, with one round trip unless the newest one is still good.
func (d *dirHandle) load(ctx context.Context) error {
	n, f := d.node, d.node.fs
	if list, ok := n.dir.Fresh(); ok {
		d.list = list
		return nil
	}
	o := f.begin(ctx)
	defer o.end()
	list := n.dir.Begin()
	var entries []cache.Entry[wire.Stat]
	err := n.at(o, "", func(path string) error {
		all, err := f.client.Getlongdir(o, path)
		entries = make([]cache.Entry[wire.Stat], 0, len(all))
		for i := range all {
			if usable(all[i].Name) {
				entries = append(entries, cache.Entry[wire.Stat]{Name: all[i].Name, Value: all[i].Stat})
			} else if all[i].Name == "." && identOf(&all[i].Stat) == n.id {
				n.learn(&all[i].Stat, list.Asked(), f.ttl)
			}
		}
		return err
	})
	if err != nil {
		n.dir.End()
		return err
	}
	n.dir.Finish(list, entries, f.ttl)
	d.list = list
	return nil
}

// usable reports whether a name that a server lists can be an entry's.
func usable(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= syscall.NAME_MAX && !strings.ContainsAny(name, "/\x00")
}

// Lookup answers for an entry that was just read, out of the listing. Where that may
// be out of date it fails, which leaves the entry to a look-up of its own.
func (d *dirHandle) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n, f := d.node, d.node.fs
	if d.list == nil || d.list.Left() <= 0 || n.dir.Changed(d.list, name) {
		return nil, syscall.EAGAIN
	}
	left := max(d.list.Left(), brief)
	st, ok := d.list.Find(name)
	if !ok {
		return nil, syscall.EAGAIN
	}
	child := f.child(ctx, &sight{dir: n, name: name, stat: st, asked: d.list.Asked()})
	if !child.learn(&st, d.list.Asked(), left) || child.pending() {
		return nil, syscall.EAGAIN
	}
	child.fill(&out.Attr, &st)
	out.SetAttrTimeout(left)
	out.SetEntryTimeout(left)
	return child.EmbeddedInode(), 0
}

// Seekdir goes to where an entry ended. The beginning is a new listing.
func (d *dirHandle) Seekdir(_ context.Context, off uint64) syscall.Errno {
	if off == 0 {
		d.drop()
	}
	d.pos = int(min(off, 1<<40))
	return 0
}

func (d *dirHandle) drop() {
	if d.list != nil {
		d.node.dir.End()
		d.list = nil
	}
}

// Releasedir is called when the directory is closed.
func (d *dirHandle) Releasedir(context.Context, uint32) { d.drop() }

// Fsyncdir has nothing to wait for: each change was acknowledged by the server when
// it was made, and the protocol cannot ask for more.
func (d *dirHandle) Fsyncdir(context.Context, uint32) syscall.Errno { return 0 }
