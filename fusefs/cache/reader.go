package cache

import (
	"context"
	"sync"
)

// How a Reader reads ahead, in bytes.
const (
	firstBlock = 256 << 10 // asked for when a file is read from its beginning
	minAhead   = 2 << 20   // held ahead of a sequential reader at first
	maxAhead   = 32 << 20  // the most that is held
	slack      = 512 << 10 // by how much reads of one stream may overtake each other
)

// Reader reads one open file, and ahead of it where it is read from beginning to
// end: then several blocks are under way, the more the longer they take. Other reads
// are asked for exactly. It is safe for concurrent use.
type Reader struct {
	start   Start
	buffers *Buffers
	budget  *Budget

	mu     sync.Mutex // guards all below
	blocks []*block   // by offset, without overlap
	next   int64      // where the stream goes on
	last   int64      // where the last read outside the stream ended
	streak int        // reads that went on with the stream
	ahead  int64      // what to hold beyond the stream
	grown  int64      // where ahead was last changed
}

// NewReader returns a Reader whose reads are started by start. Buffers are shared;
// memory of blocks that are read ahead comes out of budget.
func NewReader(start Start, buffers *Buffers, budget *Budget) *Reader {
	return &Reader{start: start, buffers: buffers, budget: budget, last: -1}
}

// Read returns up to n bytes at off; fewer only at the end of the file. size is
// what the file's size is believed to be: a read that begins before it ends there at
// the latest. When ctx ends first, Read fails at once.
func (r *Reader) Read(ctx context.Context, off int64, n int, size int64) (*Data, error) {
	return r.Plan(off, n, size).Wait(ctx)
}

// Plan is a Read whose blocks have been asked for.
type Plan struct {
	reader *Reader
	off    int64
	end    int64
	size   int64
	blocks []*block // referenced; they follow each other from off on
}

// Plan asks for what a Read needs, and for what the next ones will need, and does
// not wait. The caller must call Wait.
func (r *Reader) Plan(off int64, n int, size int64) *Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan(off, n, size)
	if r.follows(off) {
		r.drop(off - slack)
		r.streak++
		r.ahead = max(r.ahead, minAhead)
		r.next = max(r.next, p.end)
		r.extend(off, p.end, size)
	} else if off == 0 && r.next == 0 {
		r.next = p.end
		r.extend(0, max(p.end, min(firstBlock, size)), size)
	} else {
		r.last = p.end
	}
	p.blocks = r.cover(off, p.end)
	return p
}

// Exact is Plan for a file that is being written to: it asks for what the Read needs, and
// keeps nothing of it for the next ones.
func (r *Reader) Exact(off int64, n int, size int64) *Plan {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.plan(off, n, size)
	p.blocks = r.cover(off, p.end)
	return p
}

// plan is a Plan without its blocks.
func (r *Reader) plan(off int64, n int, size int64) *Plan {
	p := &Plan{reader: r, off: off, end: off + int64(n), size: size}
	if off < size {
		p.end = min(p.end, size)
	}
	return p
}

// follows reports whether a read at off goes on with the stream, which it moves to
// off where two reads outside followed each other. r.mu is held.
func (r *Reader) follows(off int64) bool {
	if r.next > 0 {
		reach := int64(slack)
		if r.streak == 0 {
			reach = 0
		}
		if off >= r.next-reach && off <= r.next+reach {
			return true
		}
	}
	if off != r.last {
		return false
	}
	r.drop(1 << 62)
	r.next, r.streak, r.ahead, r.grown = off, 0, 0, off
	return true
}

// drop lets go of the blocks that end at or before low. r.mu is held.
func (r *Reader) drop(low int64) {
	n := 0
	for n < len(r.blocks) && r.blocks[n].end() <= low {
		r.blocks[n].release(r)
		n++
	}
	r.blocks = r.blocks[n:]
}

// extend keeps blocks from off to end, and as far ahead as is wanted. Blocks that are
// not needed at once are whole ones, or end with the file. r.mu is held.
func (r *Reader) extend(off, end, size int64) {
	target := max(end, min(end+r.ahead, size))
	i := 0
	for pos := off; pos < target; {
		for i < len(r.blocks) && r.blocks[i].end() <= pos {
			i++
		}
		if i < len(r.blocks) && r.blocks[i].off <= pos {
			pos = r.blocks[i].end()
			continue
		}
		length := BlockSize - pos%BlockSize
		if i < len(r.blocks) {
			length = min(length, r.blocks[i].off-pos)
		}
		if pos < size {
			length = min(length, size-pos)
		}
		if r.ahead == 0 || pos >= size {
			length = min(length, target-pos)
		}
		if pos >= end && (pos+length > target || !r.budget.take(length)) {
			return
		}
		b := r.begin(pos, int(length))
		if pos < end {
			r.budget.overdraw(length)
		}
		b.budget = length
		r.blocks = append(r.blocks, nil)
		copy(r.blocks[i+1:], r.blocks[i:])
		r.blocks[i] = b
		pos += length
	}
}

// begin asks for a block. The caller has its one reference.
func (r *Reader) begin(off int64, n int) *block {
	b := &block{off: off, buf: r.buffers.Get(n)}
	b.refs.Store(1)
	b.data = r.start(b.buf, off)
	return b
}

// cover returns blocks that follow each other from off to end, with a reference to
// each: kept ones, and exact new ones in the gaps. r.mu is held.
func (r *Reader) cover(off, end int64) []*block {
	var out []*block
	i := 0
	for pos := off; pos < end; {
		for i < len(r.blocks) && r.blocks[i].end() <= pos {
			i++
		}
		var b *block
		if i < len(r.blocks) && r.blocks[i].off <= pos {
			b = r.blocks[i]
			b.refs.Add(1)
		} else {
			stop := min(end, pos+BlockSize)
			if i < len(r.blocks) {
				stop = min(stop, r.blocks[i].off)
			}
			b = r.begin(pos, int(stop-pos))
		}
		out = append(out, b)
		pos = b.end()
	}
	return out
}

// Wait returns what the Plan is for. The Plan must not be used afterwards.
func (p *Plan) Wait(ctx context.Context) (*Data, error) {
	d := &Data{reader: p.reader}
	for {
		ended, err := p.collect(ctx, d)
		if err != nil {
			d.Close()
			return nil, err
		}
		pos := p.off + int64(d.size)
		if ended || pos >= p.end {
			return d, nil
		}
		p.reader.mu.Lock()
		p.blocks = p.reader.cover(pos, p.end)
		p.reader.mu.Unlock()
	}
}

// collect adds the plan's blocks to d up to the first short one, and reports whether
// the file ends there.
func (p *Plan) collect(ctx context.Context, d *Data) (ended bool, err error) {
	blocks := p.blocks
	p.blocks = nil
	defer func() {
		for _, b := range blocks {
			b.release(p.reader)
		}
	}()
	for len(blocks) > 0 {
		b := blocks[0]
		if !b.isDone() {
			p.reader.stalled(b.off)
		}
		got, err := b.filled(ctx)
		if err != nil {
			if b.isDone() {
				p.reader.forget(b)
			}
			return false, err
		}
		short := len(got) < len(b.buf)
		pos := p.off + int64(d.size)
		from := min(pos-b.off, int64(len(got)))
		to := min(p.end-b.off, int64(len(got)))
		blocks = blocks[1:]
		if from == to {
			b.release(p.reader)
		} else {
			d.add(b, got[from:to])
			pos += to - from
		}
		if short && pos < p.end {
			p.reader.forget(b)
			return len(got) == 0 || pos >= p.size, nil
		}
	}
	return false, nil
}

// stalled tells that a reader has to wait for the block at off: if the stream runs
// into its end, more has to be held ahead.
func (r *Reader) stalled(off int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.streak < 2 || off-r.grown < r.ahead/2 || r.ahead >= maxAhead {
		return
	}
	r.ahead *= 2
	r.grown = off
}

// forget takes b out of what is kept: it failed, or it was short.
func (r *Reader) forget(b *block) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.blocks {
		if r.blocks[i] == b {
			r.blocks = append(r.blocks[:i], r.blocks[i+1:]...)
			b.release(r)
			return
		}
	}
}

// Invalidate makes sure that later reads of the bytes from off to end are asked for
// afresh.
func (r *Reader) Invalidate(off, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keep := r.blocks[:0]
	for _, b := range r.blocks {
		if b.off < end && b.end() > off {
			b.release(r)
		} else {
			keep = append(keep, b)
		}
	}
	clear(r.blocks[len(keep):])
	r.blocks = keep
}

// Close lets go of everything that was read ahead. Reads may still be made.
func (r *Reader) Close() { r.Invalidate(0, 1<<62) }
