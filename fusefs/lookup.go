package fusefs

import (
	"context"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
)

var (
	_ fs.NodeLookuper  = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeStatfser  = (*node)(nil)
)

// Lookup finds name in the directory: in its newest listing, else with one round
// trip.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	o := n.fs.begin(ctx)
	defer o.end()
	s := &sight{dir: n, name: name}
	left, err := n.see(o, s)
	if err == nil {
		child := n.fs.child(ctx, s)
		if err = child.describe(o, out, &s.stat, s.asked, left); err == nil {
			return child.EmbeddedInode(), 0
		}
	}
	errno := errnoFor(err)
	if errno == syscall.ENOENT {
		n.RmChild(name)
		out.SetEntryTimeout(left) // of a listing: the kernel asks again rather than add to it
	}
	return nil, errno
}

// see fills in what has the name in the directory, and says for how long that is good:
// a file that an open came upon, what the newest listing says, else what the server
// does.
func (n *node) see(ctx context.Context, s *sight) (left time.Duration, err error) {
	if fd := n.lookFound(s.name); fd != nil {
		s.stat, s.asked = fd.stat, fd.asked
		return brief, nil // the open may have followed a link
	}
	st, list, answer := n.dir.Lookup(s.name)
	switch answer {
	case cache.Absent:
		return max(list.Left(), brief), syscall.ENOENT
	case cache.Present:
		s.stat, s.asked = st, list.Asked()
		return list.Left(), nil
	}
	s.stat, s.asked, err = n.lstat(ctx, s.name)
	if err != nil {
		return 0, err
	}
	return n.fs.ttl, nil
}

// lstat asks the server for what has the name in the directory, with all that was
// written to it here.
func (n *node) lstat(ctx context.Context, name string) (st wire.Stat, asked time.Time, err error) {
	if in := n.GetChild(name); in != nil {
		if err := in.Operations().(*node).drain(ctx, nil); err != nil {
			return st, asked, err
		}
	}
	err = n.at(ctx, name, func(path string) (err error) {
		asked = time.Now()
		st, err = n.fs.client.Lstat(ctx, path)
		return err
	})
	return st, asked, err
}

// describe fills out for a node that was described by st at the moment asked, which is
// good for the time left, unless more is known by now.
func (n *node) describe(ctx context.Context, out *fuse.EntryOut, st *wire.Stat, asked time.Time, left time.Duration) error {
	if !n.learn(st, asked, left) || n.pending() {
		now, l, err := n.stat(ctx, nil)
		if err != nil {
			return err
		}
		st, left = &now, l
	}
	n.fill(&out.Attr, st)
	out.SetAttrTimeout(max(left, brief))
	out.SetEntryTimeout(max(left, brief))
	return nil
}

// Getattr tells the attributes: what is believed, else with one round trip.
func (n *node) Getattr(ctx context.Context, fh fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	o := n.fs.begin(ctx)
	defer o.end()
	h, _ := fh.(*handle)
	st, left, err := n.stat(o, h)
	if err != nil {
		return errnoFor(err)
	}
	n.fill(&out.Attr, &st)
	out.SetTimeout(max(left, brief))
	return 0
}

// Statfs tells the server's figures.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	o := n.fs.begin(ctx)
	defer o.end()
	st, err := n.fs.client.Statfs(o, n.fs.base)
	if err != nil {
		return errnoFor(err)
	}
	*out = fuse.StatfsOut{
		Blocks:  uint64(st.Blocks),
		Bfree:   uint64(st.Bfree),
		Bavail:  uint64(st.Bavail),
		Files:   uint64(st.Files),
		Ffree:   uint64(st.Ffree),
		Bsize:   uint32(st.Bsize),
		Frsize:  uint32(st.Bsize),
		NameLen: 255,
	}
	return 0
}
