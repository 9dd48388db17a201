package cache

import (
	"context"
	"sync/atomic"
)

// Transfer is a read or a write that was started. Done is closed when it has come
// to its end; then Wait returns the count of bytes.
type Transfer interface {
	Done() <-chan struct{}
	Wait(ctx context.Context) (int64, error)
}

// Start starts a read into, or a write of, p at the offset off and returns at
// once. p belongs to the transfer until it is done.
type Start func(p []byte, off int64) Transfer

// block is a piece of a file that was asked for. Once its transfer is done its
// bytes never change.
type block struct {
	off    int64
	buf    []byte
	data   Transfer
	refs   atomic.Int32 // the reader that keeps it, and each Data that shows it
	budget int64        // bytes that it took from the budget
}

func (b *block) end() int64 { return b.off + int64(len(b.buf)) }

func (b *block) isDone() bool {
	select {
	case <-b.data.Done():
		return true
	default:
		return false
	}
}

// filled waits for the bytes that came.
func (b *block) filled(ctx context.Context) ([]byte, error) {
	n, err := b.data.Wait(ctx)
	if err != nil {
		return nil, err
	}
	return b.buf[:min(n, int64(len(b.buf)))], nil
}

// release gives up one reference. The last one gives the memory back, unless a late
// reply may still land in it.
func (b *block) release(r *Reader) {
	if b.refs.Add(-1) > 0 {
		return
	}
	r.budget.give(b.budget)
	if b.isDone() {
		r.buffers.Put(b.buf)
	}
}

// Data is the result of a Read: slices of blocks, to be used until Close.
type Data struct {
	// Slices are the bytes, in order.
	Slices [][]byte
	size   int
	blocks []*block
	reader *Reader
}

// Size is the number of bytes.
func (d *Data) Size() int { return d.size }

// Close gives the bytes back; nobody may look at them afterwards.
func (d *Data) Close() {
	for _, b := range d.blocks {
		b.release(d.reader)
	}
	d.blocks, d.Slices = nil, nil
}

// add shows the bytes p of b, whose reference goes over to d.
func (d *Data) add(b *block, p []byte) {
	d.blocks = append(d.blocks, b)
	d.Slices = append(d.Slices, p)
	d.size += len(p)
}
