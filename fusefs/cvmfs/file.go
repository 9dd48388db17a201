package cvmfs

import (
	"context"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Open fetches a file that is one object; of one in chunks it fetches nothing yet.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if flags&syscall.O_ACCMODE != syscall.O_RDONLY || flags&syscall.O_TRUNC != 0 {
		return nil, 0, syscall.EROFS
	}
	h, err := n.open(ctx)
	if err != nil {
		return nil, 0, n.failed("open", err)
	}
	return h, fuse.FOPEN_KEEP_CACHE, 0
}

// open returns a handle that reads the file.
func (n *node) open(ctx context.Context) (fs.FileHandle, error) {
	e, r := n.entry, n.repo
	switch {
	case e.external():
		return nil, fmt.Errorf("%w: its content is outside the repository", ErrUnsupported)
	case e.size == 0:
		return &wholeFile{}, nil
	case e.chunked():
		h := &chunkedFile{node: n}
		err := r.tree.with(ctx, n.spot.catalog, func(c *catalog) (err error) {
			h.chunks, err = c.chunks(n.spot.path, e)
			return err
		})
		return h, err
	case !e.hashed:
		return nil, fmt.Errorf("%w: its content has a hash or a compression that is not known", ErrUnsupported)
	}
	r.ahead.opened(n.spot.path)
	f, size, err := r.fetch.open(ctx, e.want())
	if err != nil {
		return nil, err
	}
	return &wholeFile{f, size}, nil
}

// wholeFile is one open of a file that is one object. It keeps the object readable
// when it is evicted.
type wholeFile struct {
	file *os.File // nil for an empty file
	size int64
}

var (
	_ fs.FileReader   = (*wholeFile)(nil)
	_ fs.FileReleaser = (*wholeFile)(nil)
)

// Read reads from the cache.
func (h *wholeFile) Read(_ context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n := min(int64(len(dest)), h.size-off)
	if n <= 0 {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultFd(h.file.Fd(), off, int(n)), 0
}

// Release is called when nobody reads any more.
func (h *wholeFile) Release(context.Context) syscall.Errno {
	if h.file != nil {
		h.file.Close() // it was only read
	}
	return 0
}

const (
	// maxAhead bounds how far a reader of a chunked file is kept ahead of, in bytes.
	maxAhead = 64 << 20
	// firstAhead is how much must have been read in sequence before anything is.
	firstAhead = 256 << 10
	// jitter is how far apart from the last one a read may be and still be the next:
	// the kernel's read-ahead sends several at once.
	jitter = 2 << 20
)

// chunkedFile is one open of a file in chunks. It fetches those that are read, and the
// next ones when they are read in sequence.
type chunkedFile struct {
	node   *node
	chunks []chunk

	mu       sync.Mutex
	parts    [2]*part // guarded by mu: open chunks, the one used last first
	end, run int64    // guarded by mu: where the last read ended, and how much came before it in sequence
}

// part is an open chunk.
type part struct {
	file  *os.File
	index int
	users int // guarded by chunkedFile.mu; one for being in parts
}

var (
	_ fs.FileReader   = (*chunkedFile)(nil)
	_ fs.FileReleaser = (*chunkedFile)(nil)
)

// Read reads from the chunks.
func (h *chunkedFile) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	h.readAhead(off, int64(len(dest)))
	done := 0
	for done < len(dest) {
		at := off + int64(done)
		i := h.index(at)
		if i < 0 {
			break
		}
		n, err := h.readChunk(ctx, i, dest[done:], at)
		if err != nil {
			return nil, h.node.failed("read", err)
		}
		done += n
	}
	return fuse.ReadResultData(dest[:done]), 0
}

// index is the chunk that has the byte at off, -1 behind the end.
func (h *chunkedFile) index(off int64) int {
	lo, hi := 0, len(h.chunks)
	for lo < hi {
		mid := (lo + hi) / 2
		if c := &h.chunks[mid]; off >= c.offset+c.size {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(h.chunks) {
		return -1
	}
	return lo
}

// readChunk reads from chunk i as much as it has for dest; off counts in the file.
func (h *chunkedFile) readChunk(ctx context.Context, i int, dest []byte, off int64) (int, error) {
	p, err := h.take(ctx, i)
	if err != nil {
		return 0, err
	}
	defer h.release(p)
	c := &h.chunks[i]
	n := min(int64(len(dest)), c.offset+c.size-off)
	return p.file.ReadAt(dest[:n], off-c.offset)
}

// take opens chunk i, or finds it open.
func (h *chunkedFile) take(ctx context.Context, i int) (*part, error) {
	if p := h.held(i, nil); p != nil {
		return p, nil
	}
	f, _, err := h.node.repo.fetch.open(ctx, h.chunks[i].want)
	if err != nil {
		return nil, err
	}
	return h.held(i, f), nil
}

// held returns chunk i when it is open. Given its file it is made so.
func (h *chunkedFile) held(i int, f *os.File) *part {
	h.mu.Lock()
	defer h.mu.Unlock()
	for k, p := range h.parts {
		if p != nil && p.index == i {
			h.parts[0], h.parts[k] = p, h.parts[0]
			p.users++
			if f != nil {
				f.Close() // somebody else was faster
			}
			return p
		}
	}
	if f == nil {
		return nil
	}
	p := &part{file: f, index: i, users: 2}
	h.unuse(h.parts[1])
	h.parts[1], h.parts[0] = h.parts[0], p
	return p
}

// release gives back what take returned.
func (h *chunkedFile) release(p *part) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unuse(p)
}

// unuse closes a part when it was the last use. mu is held.
func (h *chunkedFile) unuse(p *part) {
	if p == nil {
		return
	}
	if p.users--; p.users == 0 {
		p.file.Close()
	}
}

// readAhead begins to fetch the chunks that come next, when this read goes on where
// the last one ended.
func (h *chunkedFile) readAhead(off, size int64) {
	h.mu.Lock()
	if off < h.end-jitter || off > h.end+jitter {
		h.run = 0
	}
	h.run += size
	h.end = off + size
	run := h.run
	h.mu.Unlock()
	if run < firstAhead {
		return
	}
	limit := off + size + min(4*run, maxAhead)
	for i := h.index(off) + 1; i > 0 && i < len(h.chunks) && h.chunks[i].offset < limit; i++ {
		h.node.repo.fetch.prefetch(h.chunks[i].want)
	}
}

// Release is called when nobody reads any more.
func (h *chunkedFile) Release(context.Context) syscall.Errno {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, p := range h.parts {
		h.unuse(p)
		h.parts[i] = nil
	}
	return 0
}
