package fusefs

import (
	"context"
	"runtime"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/hanwen/go-fuse/v2/fs"

	"skeletonkey/chirpd/wire"
)

// ident is what tells one file of the export from another. A file system gives an
// inode number out again once its file is gone; generations tell such files apart.
type ident struct{ dev, ino int64 }

func identOf(st *wire.Stat) ident { return ident{st.Dev, st.Ino} }

// identities knows the newest node of each file that somebody still uses: the
// kernel, or an open file. It does not keep nodes alive.
type identities struct {
	mu         sync.Mutex
	nodes      map[ident]weak.Pointer[node]
	generation uint64
	device     int64 // the export root's
}

// sight is a file that the server showed.
type sight struct {
	dir   *node
	name  string // in dir
	stat  wire.Stat
	asked time.Time // when the server was asked
	fresh bool      // we have just made the file, under this name
}

// child returns the node of the file that was seen: the known one, unless that cannot
// be the same file.
func (f *FS) child(ctx context.Context, s *sight) *node {
	n := f.ids.find(ctx, f, s)
	dir, name := s.dir, s.name
	if old := dir.GetChild(name); old != nil && old != n.EmbeddedInode() {
		dir.RmChild(name) // or the old node would go on to believe that this is its name
	}
	return n
}

func (t *identities) find(ctx context.Context, f *FS, s *sight) *node {
	id := identOf(&s.stat)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[id].Value(); n != nil && n.mayBe(s) {
		return n
	}
	t.generation++
	n := newNode(f, id, uint32(s.stat.Mode)&syscall.S_IFMT)
	s.dir.NewInode(ctx, n, fs.StableAttr{
		Mode: n.kind,
		Ino:  t.number(id),
		Gen:  t.generation,
	})
	t.put(n)
	return n
}

// put makes n the newest node of its file. t.mu is held.
func (t *identities) put(n *node) {
	w := weak.Make(n)
	t.nodes[n.id] = w
	runtime.AddCleanup(n, func(id ident) {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.nodes[id] == w {
			delete(t.nodes, id)
		}
	}, n.id)
}

// number is the inode number that applications see: the server's own on the root's
// device; numbers of other devices are scattered, so that they hardly meet.
func (t *identities) number(id ident) uint64 {
	n := uint64(id.ino) ^ uint64(id.dev-t.device)*0x9E3779B97F4A7C15
	if n == 0 || n == ^uint64(0) {
		return 1 << 62
	}
	return n
}

// mayBe reports whether the file that was seen can be the node's. While a descriptor of
// the server pins a file, its inode number is not given out again; and what was seen
// before the node was changed here tells nothing.
func (n *node) mayBe(s *sight) bool {
	if s.fresh || uint32(s.stat.Mode)&syscall.S_IFMT != n.kind {
		return false
	}
	if n.pinned() {
		return true
	}
	n.mu.Lock()
	gone, outdated := n.gone, s.asked.Before(n.touched)
	n.mu.Unlock()
	if gone || outdated || n.kind == syscall.S_IFDIR {
		return !gone
	}
	known, parent := n.Parent()
	return s.stat.Nlink != 1 || parent == nil || parent == s.dir.EmbeddedInode() && known == s.name
}

// sameState reports whether nothing tells that a file changed between a and b.
func sameState(a, b *wire.Stat) bool {
	return a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime
}
