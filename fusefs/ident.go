package fusefs

import (
	"context"
	"runtime"
	"sync"
	"syscall"
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

// child returns the node of the file that the server described with st as name in
// dir: the known one, unless the file was made just now (fresh), or what is known
// cannot be the same file.
func (f *FS) child(ctx context.Context, dir *node, name string, st *wire.Stat, fresh bool) *node {
	n := f.ids.find(ctx, f, dir, name, st, fresh)
	if old := dir.GetChild(name); old != nil && old != n.EmbeddedInode() {
		dir.RmChild(name) // or the old node would go on to believe that this is its name
	}
	return n
}

func (t *identities) find(ctx context.Context, f *FS, dir *node, name string, st *wire.Stat, fresh bool) *node {
	id := identOf(st)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.nodes[id].Value(); n != nil && !fresh && n.mayBe(dir, name, st) {
		return n
	}
	t.generation++
	n := newNode(f, id, uint32(st.Mode)&syscall.S_IFMT)
	dir.NewInode(ctx, n, fs.StableAttr{
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

// mayBe reports whether st, found as name in dir, can be the file of n. While a
// descriptor of the server pins the file, its inode number is not given out again.
func (n *node) mayBe(dir *node, name string, st *wire.Stat) bool {
	if uint32(st.Mode)&syscall.S_IFMT != n.kind {
		return false
	}
	if n.kind == syscall.S_IFDIR || n.pinned() {
		return true
	}
	if n.isGone() {
		return false
	}
	if n.held() && !sameState(n.lastStat(), st) {
		return false // readers of what is in memory must not get to see another file
	}
	known, parent := n.Parent()
	return st.Nlink != 1 || parent == nil || parent == dir.EmbeddedInode() && known == name
}

// sameState reports whether nothing tells that a file changed between a and b.
func sameState(a, b *wire.Stat) bool {
	return a.Size == b.Size && a.Mtime == b.Mtime && a.Ctime == b.Ctime
}
