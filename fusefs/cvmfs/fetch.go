package cvmfs

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"
)

const (
	// prefetches bounds the objects that are under way before anybody asked for them.
	prefetches = 48
	// maxCatalog bounds a catalog whose size nobody tells, in bytes.
	maxCatalog = 4 << 30
	// unknown is the size of an object when nobody tells it.
	unknown int64 = -1
)

// want is an object that is to be had.
type want struct {
	object
	size int64  // of its content, in bytes; or unknown
	alt  string // another path on the servers, tried first
}

// fetcher brings objects into the store, each once, verified. Safe for concurrent use.
type fetcher struct {
	net    *network
	store  *store
	ctx    context.Context // ends all fetching
	slots  chan struct{}   // of prefetches
	work   sync.WaitGroup  // flights
	brings atomic.Int64    // how many objects came over the network, for the log

	mu      sync.Mutex
	flights map[object]*flight // guarded by mu
}

// flight is an object under way.
type flight struct {
	done   chan struct{} // closed at the end
	err    error         // after done
	urgent chan struct{} // closed when somebody waits for it
	once   sync.Once
}

func newFetcher(ctx context.Context, n *network, s *store) *fetcher {
	return &fetcher{net: n, store: s, ctx: ctx, slots: make(chan struct{}, prefetches), flights: make(map[object]*flight)}
}

// open returns the file of an object and the size of its content, as store.open
// does; the object is fetched when it is not there. ctx ends the wait, not the fetch:
// others may wait for it.
func (f *fetcher) open(ctx context.Context, w want) (*os.File, int64, error) {
	for range 3 { // it may be evicted between its coming and our opening it
		file, size, err := f.store.open(w.object)
		if err == nil {
			if w.size != unknown && size != w.size {
				file.Close()
				return nil, 0, fmt.Errorf("%w: object %s has %d bytes, its catalog says %d", ErrCorrupt, w.name(), size, w.size)
			}
			return file, size, nil
		}
		if !errors.Is(err, errAbsent) {
			return nil, 0, err
		}
		fl := f.join(w)
		fl.once.Do(func() { close(fl.urgent) })
		select {
		case <-fl.done:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
		if fl.err != nil {
			return nil, 0, fl.err
		}
	}
	return nil, 0, fmt.Errorf("object %s is removed from the cache faster than it can be read: the quota is too small", w.name())
}

// prefetch sees to it that an object comes, and does not wait for it.
func (f *fetcher) prefetch(w want) {
	if !f.store.has(w.object) {
		f.join(w)
	}
}

// join returns the flight of an object, a new one when there is none.
func (f *fetcher) join(w want) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	fl := f.flights[w.object]
	if fl != nil {
		return fl
	}
	fl = &flight{done: make(chan struct{}), urgent: make(chan struct{})}
	if f.ctx.Err() != nil {
		fl.err = f.ctx.Err()
		close(fl.done)
		return fl
	}
	f.flights[w.object] = fl
	f.work.Go(func() {
		fl.err = f.fly(fl, w)
		f.mu.Lock()
		delete(f.flights, w.object)
		f.mu.Unlock()
		close(fl.done)
	})
	return fl
}

// fly fetches an object when there is room, at once when somebody waits for it.
func (f *fetcher) fly(fl *flight, w want) error {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-fl.urgent:
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
	err := f.bring(w)
	if full(err) && f.store.evict(func(total int64) int64 { return total / 2 }) {
		err = f.bring(w)
	}
	return err
}

// bring fetches an object into the store.
func (f *fetcher) bring(w want) error {
	return f.store.fill(f.ctx, w.object, 2*f.net.timeoutDirect, func(out contentFile) error {
		consume := func(body io.Reader) error {
			if err := out.restart(); err != nil {
				return err
			}
			return w.decode(out, body)
		}
		f.brings.Add(1)
		err := f.net.get(f.ctx, cmp.Or(w.alt, w.path()), consume)
		if err != nil && w.alt != "" {
			err = f.net.get(f.ctx, w.path(), consume)
		}
		if err != nil {
			return fmt.Errorf("object %s: %w", w.path(), err)
		}
		return nil
	})
}

// limit is the most that the object's content may have, in bytes.
func (w want) limit() int64 {
	if w.size != unknown {
		return w.size
	}
	return maxCatalog
}

// decode writes the object's content to out. What the servers sent must have the
// object's hash and make up a content of the right size; else it is a *badData.
func (w want) decode(out io.Writer, body io.Reader) error {
	// Deflate makes nothing larger by more than 5 bytes in 16 KiB.
	limit := w.limit() + w.limit()/1000 + 1<<10
	in := &hashed{r: io.LimitReader(body, limit+1), d: w.alg.digest()}
	err := w.copyContent(out, in)
	if err != nil && !isBad(err) {
		return err
	}
	if _, e := io.Copy(io.Discard, in); e != nil && err == nil {
		err = &badData{e}
	}
	if in.n > limit {
		return bad(ErrCorrupt, "it is larger than the %d bytes it should have", w.limit())
	}
	if in.d.end() != w.sum {
		return bad(ErrCorrupt, "what came (%d bytes) has another hash", in.n)
	}
	return err
}

// copyContent writes the content that comes from in.
func (w want) copyContent(out io.Writer, in io.Reader) error {
	content := in
	if !w.plain {
		z, err := inflaters.get(in)
		if err != nil {
			return bad(ErrCorrupt, "it is not compressed as it should be: %v", err)
		}
		defer inflaters.put(z)
		content = z
	}
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	src := &source{r: io.LimitReader(content, w.limit()+1)}
	n, err := io.CopyBuffer(onlyWriter{out}, src, buf[:])
	switch {
	case src.err != nil:
		return bad(ErrCorrupt, "it cannot be uncompressed: %v", src.err)
	case err != nil:
		return err
	case n > w.limit() || w.size != unknown && n != w.size:
		return bad(ErrCorrupt, "its content has not the %d bytes it should have", w.limit())
	}
	return nil
}

// hashed hashes and counts what is read from r.
type hashed struct {
	r io.Reader
	d digest
	n int64
}

func (h *hashed) Read(p []byte) (int, error) {
	n, err := h.r.Read(p)
	_, _ = h.d.Write(p[:n])
	h.n += int64(n)
	return n, err
}

// source remembers whether reading failed, for io.Copy does not tell.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// inflater is a reader of zlib streams that is used again.
type inflater struct {
	buf *bufio.Reader
	io.ReadCloser
}

type inflaterPool struct{ pool sync.Pool }

var inflaters inflaterPool

// get returns a reader of the content of r. put takes it back.
func (p *inflaterPool) get(r io.Reader) (*inflater, error) {
	z, _ := p.pool.Get().(*inflater)
	if z == nil {
		z = &inflater{buf: bufio.NewReaderSize(r, 32<<10)}
	}
	z.buf.Reset(r)
	var err error
	if z.ReadCloser == nil {
		z.ReadCloser, err = zlib.NewReader(z.buf)
	} else {
		err = z.ReadCloser.(zlib.Resetter).Reset(z.buf, nil)
	}
	if err != nil {
		return nil, err
	}
	return z, nil
}

func (p *inflaterPool) put(z *inflater) {
	z.buf.Reset(nil)
	p.pool.Put(z)
}
