package fusefs

import (
	"context"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
)

// node is a file, directory or link of the export. It is one file, whatever its
// names: its path is looked up in go-fuse's tree each time that one is needed.
type node struct {
	fs.Inode
	fs   *FS
	id   ident
	kind uint32 // S_IFMT bits
	dir  *cache.Directory[wire.Stat]

	// io orders reads and writes of this file: starting reads holds it shared,
	// accepting writes exclusively. Nobody waits while holding it.
	io sync.RWMutex

	mu      sync.Mutex // guards the following
	attr    cache.Timed[wire.Stat]
	asked   time.Time // when attr was asked for
	touched time.Time // when something was changed here
	data    uint64    // changes of the content made here, counted
	gone    bool      // we removed the last name
	pages   pages
	found   map[string]*found // by name in this directory
	rights  rights
	target  *target   // of a link, if it was read
	open    *openFile // nil while no handle is open
}

// openFile is what all open handles of a file share.
type openFile struct {
	handles map[*handle]struct{}
	failed  uint64 // writes that failed, counted
	told    uint64 // up to which of them somebody was told
	err     error  // of the last one
}

func newNode(f *FS, id ident, kind uint32) *node {
	n := &node{fs: f, id: id, kind: kind}
	if kind == syscall.S_IFDIR {
		n.dir = new(cache.Directory[wire.Stat])
	}
	return n
}

// path is where the node is now. FS.locked keeps it there.
func (n *node) path() (string, error) {
	var names []string
	in := n.EmbeddedInode()
	for !in.IsRoot() {
		name, parent := in.Parent()
		if parent == nil || parent.GetChild(name) != in {
			return "", errStale
		}
		names = append(names, name)
		in = parent
	}
	names = append(names, n.fs.base)
	slices.Reverse(names)
	return path.Join(names...), nil
}

// at runs call with the node's path, or that of name in it, which stays what it is
// until call returns.
func (n *node) at(ctx context.Context, name string, call func(path string) error) error {
	return n.fs.locked(ctx, func() error {
		p, err := n.path()
		if err != nil {
			return err
		}
		return call(path.Join(p, name))
	})
}

// learn takes attributes that were asked for at the moment asked and are believed for
// the time left, and reports whether it did: newer ones, or a change made here since,
// make them worthless.
func (n *node) learn(st *wire.Stat, asked time.Time, left time.Duration) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if asked.Before(n.touched) || asked.Before(n.asked) {
		return false
	}
	n.attr.Set(*st, left)
	n.asked = asked
	return true
}

// changed tells that something was changed here: what was asked before is not
// believed any more.
func (n *node) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changedLocked()
}

func (n *node) changedLocked() {
	n.touched = time.Now()
	n.attr.Forget()
	n.rights = rights{}
}

// lastStat is what was last known of the file.
func (n *node) lastStat() *wire.Stat {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := *n.attr.Last()
	return &st
}

// removed tells that one of the file's names was removed here.
func (n *node) removed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.attr.Last()
	if n.kind == syscall.S_IFDIR || st.Nlink <= 1 {
		n.gone = true
		st.Nlink = 0
	} else {
		st.Nlink--
	}
	n.changedLocked()
}

func (n *node) isGone() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone
}

// pinned reports whether a descriptor on the server holds the file.
func (n *node) pinned() bool {
	file := n.borrowAny(nil)
	if file == nil {
		return false
	}
	file.giveBack()
	return true
}

// held reports whether a handle is open.
func (n *node) held() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open != nil
}

// stat returns the node's attributes and for how long they are good. What was
// written before is in them.
func (n *node) stat(ctx context.Context, h *handle) (wire.Stat, time.Duration, error) {
	if err := n.drain(ctx, nil); err != nil {
		return wire.Stat{}, 0, err
	}
	n.mu.Lock()
	if st, left, ok := n.attr.Get(); ok {
		n.mu.Unlock()
		return st, left, nil
	}
	n.mu.Unlock()
	return n.ask(ctx, h)
}

// ask asks the server for the node's attributes.
func (n *node) ask(ctx context.Context, h *handle) (wire.Stat, time.Duration, error) {
	asked := time.Now()
	var st wire.Stat
	var err error
	file := n.borrowAny(h)
	if file != nil {
		st, err = file.Fstat(ctx)
		file.giveBack()
	}
	if file == nil || errnoFor(err) == errStale { // lost with its connection, which says nothing of the file
		err = n.at(ctx, "", func(path string) (err error) {
			st, err = n.fs.client.Lstat(ctx, path)
			return err
		})
		if err == nil && !n.is(&st) {
			err = errStale // another file has the name by now
		}
		if err != nil && n.orphaned(errnoFor(err)) {
			st = *n.lastStat()
			st.Nlink = 0
			return st, n.fs.ttl, nil
		}
	}
	if err != nil {
		return wire.Stat{}, 0, err
	}
	n.learn(&st, asked, n.fs.ttl)
	return st, n.fs.ttl, nil
}

// is reports whether st describes the node's file.
func (n *node) is(st *wire.Stat) bool {
	return identOf(st) == n.id && uint32(st.Mode)&syscall.S_IFMT == n.kind
}

// orphaned reports whether an error of asking for a path just says that the file has
// no name any more, and its user holds on to it: then what is known stays true.
func (n *node) orphaned(errno syscall.Errno) bool {
	return (errno == syscall.ENOENT || errno == syscall.ENOTDIR || errno == errStale) && (n.isGone() || n.held())
}

// fill writes st into what the kernel is told.
func (n *node) fill(out *fuse.Attr, st *wire.Stat) {
	*out = fuse.Attr{
		Ino:     n.StableAttr().Ino,
		Size:    uint64(st.Size),
		Blocks:  uint64(st.Blocks),
		Atime:   uint64(st.Atime),
		Mtime:   uint64(st.Mtime),
		Ctime:   uint64(st.Ctime),
		Mode:    n.kind | uint32(st.Mode)&0o7777,
		Nlink:   uint32(st.Nlink),
		Owner:   fuse.Owner{Uid: n.fs.owner.UID, Gid: n.fs.owner.GID},
		Rdev:    uint32(st.Rdev),
		Blksize: blockSize,
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages.told = *st
}

// blockSize is what programs that ask for the best size of reads and writes are
// told: buffers of the C library become so large.
const blockSize = 128 << 10

// brief is the shortest time for which go-fuse tells the kernel to believe
// something; zero would mean the default.
const brief = time.Nanosecond
