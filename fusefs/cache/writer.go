package cache

import (
	"context"
	"io"
	"sync"
)

// maxWriteBehind is how many accepted bytes of one open file may wait for the
// server.
const maxWriteBehind = 16 << 20

// Writer writes one open file behind its user's back: Write accepts bytes at once,
// puts neighbours together while earlier ones are under way, and hands them on in
// order. It is safe for concurrent use.
//
// A goroutine takes the answers. It runs only while something is pending, and has
// ended when Wait returns and nobody has written meanwhile.
type Writer struct {
	start   Start
	buffers *Buffers
	budget  *Budget
	ended   func(error)
	append  bool // offsets mean nothing: all bytes follow each other

	mu      sync.Mutex    // guards all below
	growing *piece        // accepted and not sent; nil for none
	flight  []*piece      // sent, oldest first
	bytes   int64         // in all of them
	newest  uint64        // number of the newest piece
	done    uint64        // pieces up to this number have come to their end
	running bool          // there is a goroutine
	change  chan struct{} // closed when done or running changes
}

// piece is a contiguous run of bytes.
type piece struct {
	number uint64
	off    int64
	data   []byte
	write  Transfer
}

func (p *piece) end() int64 { return p.off + int64(len(p.data)) }

// NewWriter returns a Writer whose writes are started by start. ended is called, from
// the Writer's goroutine, for each piece that has reached the server, or failed to,
// before any Wait for it returns. With atEnd all bytes go to the end of the file,
// whatever their offsets. What is pending comes out of budget, which may be overdrawn by
// one write of each Writer.
func NewWriter(start Start, buffers *Buffers, budget *Budget, atEnd bool, ended func(error)) *Writer {
	return &Writer{start: start, buffers: buffers, budget: budget, append: atEnd, ended: ended, change: make(chan struct{})}
}

// Room waits until n more bytes fit, or nothing is pending.
func (w *Writer) Room(ctx context.Context, n int) error {
	return w.await(ctx, func() bool {
		return w.bytes == 0 || w.bytes+int64(n) <= maxWriteBehind && w.budget.has(int64(n))
	})
}

// await waits until ok, which is called with mu held.
func (w *Writer) await(ctx context.Context, ok func() bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !ok() {
		change := w.change
		w.mu.Unlock()
		select {
		case <-change:
			w.mu.Lock()
		case <-ctx.Done():
			w.mu.Lock()
			return ctx.Err()
		}
	}
	return nil
}

// Write accepts p, which stays the caller's, for the offset off. It never waits:
// call Room first.
func (w *Writer) Write(p []byte, off int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytes += int64(len(p))
	w.budget.overdraw(int64(len(p)))
	for len(p) > 0 {
		if g := w.growing; g != nil && !w.append && g.end() != off {
			w.send()
		}
		if w.growing == nil {
			w.newest++
			w.growing = &piece{number: w.newest, off: off, data: w.buffers.Get(min(len(p), BlockSize))[:0]}
		}
		n := min(len(p), BlockSize-len(w.growing.data))
		w.growing.add(p[:n], w.buffers)
		p, off = p[n:], off+int64(n)
		if len(w.growing.data) == BlockSize || len(w.flight) == 0 {
			w.send()
		}
	}
}

// add appends q. A piece that outgrows its buffer gets a larger one, soon that of a
// whole block.
func (p *piece) add(q []byte, buffers *Buffers) {
	if need := len(p.data) + len(q); need > cap(p.data) {
		size := BlockSize
		if need <= 64<<10 {
			size = 64 << 10
		}
		data := append(buffers.Get(size)[:0], p.data...)
		buffers.Put(p.data)
		p.data = data
	}
	p.data = append(p.data, q...)
}

// send starts the growing piece. w.mu is held.
func (w *Writer) send() {
	p := w.growing
	w.growing = nil
	p.write = w.start(p.data, p.off)
	w.flight = append(w.flight, p)
	if !w.running {
		w.running = true
		go w.run()
	}
}

// run takes the answers until nothing is pending.
func (w *Writer) run() {
	for {
		w.mu.Lock()
		if len(w.flight) == 0 && w.growing != nil {
			w.send()
		}
		if len(w.flight) == 0 {
			w.running = false
			w.changed()
			w.mu.Unlock()
			return
		}
		p := w.flight[0]
		w.mu.Unlock()
		w.ended(w.complete(p))
		w.mu.Lock()
		w.flight = w.flight[1:]
		w.done = p.number
		w.bytes -= int64(len(p.data))
		w.budget.give(int64(len(p.data)))
		w.buffers.Put(p.data)
		w.changed()
		w.mu.Unlock()
	}
}

// changed wakes those who wait. w.mu is held.
func (w *Writer) changed() {
	close(w.change)
	w.change = make(chan struct{})
}

// complete waits for the oldest piece's answer, and writes again what a short one left
// over.
func (w *Writer) complete(p *piece) error {
	rest, off, write := p.data, p.off, p.write
	for {
		n, err := write.Wait(context.Background())
		switch {
		case err != nil:
			return err
		case n >= int64(len(rest)):
			return nil
		case n <= 0 || w.append:
			return io.ErrShortWrite
		}
		rest, off = rest[n:], off+n
		if write = w.resume(rest, off); write == nil {
			return io.ErrShortWrite
		}
	}
}

// resume starts what a short write of the oldest piece left over, unless newer bytes for
// the same place have been sent since: it would overwrite them.
func (w *Writer) resume(rest []byte, off int64) Transfer {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, newer := range w.flight[1:] {
		if newer.off < off+int64(len(rest)) && newer.end() > off {
			return nil
		}
	}
	return w.start(rest, off)
}

// Push starts what was accepted and not started yet.
func (w *Writer) Push() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.growing != nil {
		w.send()
	}
}

// Wait starts what was accepted so far, and waits until it has been answered.
func (w *Writer) Wait(ctx context.Context) error {
	w.Push()
	w.mu.Lock()
	target := w.newest
	w.mu.Unlock()
	return w.await(ctx, func() bool { return w.done >= target && (w.bytes > 0 || !w.running) })
}

// Pending reports whether accepted bytes have not been answered.
func (w *Writer) Pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bytes > 0
}

// Overlaps reports whether accepted bytes between off and end have not been
// answered. Of a Writer at the end of a file any bytes count.
func (w *Writer) Overlaps(off, end int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.append {
		return w.bytes > 0
	}
	hit := func(p *piece) bool { return p != nil && p.off < end && p.end() > off }
	for _, p := range w.flight {
		if hit(p) {
			return true
		}
	}
	return hit(w.growing)
}
