package fusefs

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
)

// handle is one open of a file. Descriptors that dup and fork make share it.
type handle struct {
	node   *node
	flags  uint32 // of open(2)
	opened uint64 // failed writes of the file before the open; they are not of interest here

	file   atomic.Pointer[remoteFile] // nil while the content in memory serves
	reader *cache.Reader
	writer *cache.Writer // nil when not open for writing

	mu      sync.Mutex // guards the following
	content *content   // nil when there is none, or it is out of date
	told    uint64     // failed writes of the file that this handle's user knows of
	wrote   bool       // is in FS.writers
	closed  bool       // close has run
	twins   []*handle  // opened by withoutAppend; they end with this one
}

// content is a whole small file that came with its open.
type content struct {
	data    []byte
	mtime   int64  // of the file
	changes uint64 // made to its data here
}

var (
	_ fs.FileReader   = (*handle)(nil)
	_ fs.FileWriter   = (*handle)(nil)
	_ fs.FileFlusher  = (*handle)(nil)
	_ fs.FileFsyncer  = (*handle)(nil)
	_ fs.FileReleaser = (*handle)(nil)
	_ fs.FileLseeker  = (*handle)(nil)
)

// newHandle adds a handle to the node's open ones. file is nil when c serves.
func (n *node) newHandle(file *client.File, flags uint32, c *content) *handle {
	h := &handle{node: n, flags: flags, content: c}
	if file != nil {
		h.file.Store(&remoteFile{File: file})
	}
	h.reader = cache.NewReader(h.startRead, &n.fs.buffers, n.fs.ahead)
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY {
		h.writer = cache.NewWriter(h.startWrite, &n.fs.buffers, n.fs.behind, flags&syscall.O_APPEND != 0, h.written)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		n.open = &openFile{handles: make(map[*handle]struct{})}
	}
	n.open.handles[h] = struct{}{}
	h.opened, h.told = n.open.failed, n.open.failed
	return h
}

func (h *handle) startRead(p []byte, off int64) cache.Transfer {
	return h.file.Load().StartPread(p, off)
}

func (h *handle) startWrite(p []byte, off int64) cache.Transfer {
	return h.file.Load().StartPwrite(p, off)
}

// readResult is Data in the form in which go-fuse sends it without copying.
type readResult struct{ *cache.Data }

// Bytes copies the data into buf.
func (r readResult) Bytes(buf []byte) ([]byte, fuse.Status) {
	n := 0
	for _, s := range r.Data.Slices {
		n += copy(buf[n:], s)
	}
	return buf[:n], fuse.OK
}

// Slices are what is sent.
func (r readResult) Slices() ([][]byte, fuse.Status) { return r.Data.Slices, fuse.OK }

// Done is called when the kernel has the data.
func (r readResult) Done() { r.Close() }

// Read reads from memory, from what was read ahead, or from the server.
func (h *handle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	o := h.node.fs.begin(ctx)
	defer o.end()
	if data, ok := h.inMemory(off, len(dest)); ok {
		return fuse.ReadResultData(data), 0
	}
	if err := h.ensure(o); err != nil {
		return nil, errnoFor(err)
	}
	plan, err := h.plan(o, off, len(dest))
	if err != nil {
		return nil, errnoFor(err)
	}
	data, err := plan.Wait(o)
	if err != nil {
		return nil, errnoFor(err)
	}
	return readResult{data}, 0
}

// inMemory reads what came with the open, if that is still the file's content.
func (h *handle) inMemory(off int64, n int) ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.content == nil {
		return nil, false
	}
	if !h.node.still(h.content) {
		h.content = nil
		return nil, false
	}
	data := h.content.data
	if off >= int64(len(data)) {
		return nil, true
	}
	return data[off:min(off+int64(n), int64(len(data)))], true
}

// still reports whether nothing is known to have changed in the file since c was
// read.
func (n *node) still(c *content) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.attr.Last()
	return n.data == c.changes && st.Mtime == c.mtime && st.Size == int64(len(c.data))
}

// secure makes sure that open handles can read on when the file's last name is gone.
func (n *node) secure(ctx context.Context) {
	n.mu.Lock()
	var list []*handle
	if n.open != nil {
		for h := range n.open.handles {
			list = append(list, h)
		}
	}
	n.mu.Unlock()
	changing := len(n.writing(nil)) > 0
	for _, h := range list {
		if _, ok := h.inMemory(0, 0); !ok || changing {
			_ = h.ensureAt(ctx) // if that fails reads will, as nobody else can help them
		}
	}
}

// ensure opens the file on the server, if it is not.
func (h *handle) ensure(ctx context.Context) error {
	if h.file.Load() != nil {
		return nil
	}
	return h.node.fs.locked(ctx, func() error { return h.ensureAt(ctx) })
}

// ensureAt is ensure for a caller who keeps paths from changing.
func (h *handle) ensureAt(ctx context.Context) error {
	if h.file.Load() != nil {
		return nil
	}
	path, err := h.node.path()
	if err != nil {
		return err
	}
	file, err := h.node.fs.client.Open(ctx, path, wire.OpenRead, 0)
	if err != nil {
		return err
	}
	st := file.Stat()
	if identOf(&st) != h.node.id {
		file.StartClose()
		return errStale
	}
	if !h.file.CompareAndSwap(nil, &remoteFile{File: file}) {
		file.StartClose() // another read was faster
	}
	return nil
}

// plan starts a read, after all that was written before has been answered. While somebody
// goes on writing it is read exactly what is asked for: a block that is kept could be
// older than what is under way.
func (h *handle) plan(ctx context.Context, off int64, n int) (*cache.Plan, error) {
	if err := h.node.drain(ctx, nil); err != nil {
		return nil, err
	}
	h.node.io.RLock()
	defer h.node.io.RUnlock()
	size := h.node.lastStat().Size
	if h.node.pending() {
		return h.reader.Exact(off, n, size), nil
	}
	return h.reader.Plan(off, n, size), nil
}

// Lseek leaves SEEK_DATA and SEEK_HOLE to the kernel, which takes a file for all
// data: the protocol tells nothing of holes. It is asked once per mount.
func (h *handle) Lseek(context.Context, uint64, uint32) (uint64, syscall.Errno) {
	return 0, syscall.ENOSYS
}
