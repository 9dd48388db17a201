package cache

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// BlockSize is the most that one read or write on the wire moves, in bytes.
const BlockSize = 1 << 20

// Buffers keeps memory of blocks for reuse: clearing fresh memory costs as much as
// filling it. It is safe for concurrent use; the zero Buffers is ready.
type Buffers struct {
	pools [21]sync.Pool // by the power of two that is the capacity, up to BlockSize
}

// Get returns n bytes of any content; n is at most BlockSize.
func (b *Buffers) Get(n int) []byte {
	class := bits.Len(uint(max(n, 4096) - 1))
	if p, ok := b.pools[class].Get().(*[]byte); ok {
		return (*p)[:n]
	}
	return make([]byte, n, 1<<class)
}

// Put takes back what Get returned. Nobody may use it afterwards.
func (b *Buffers) Put(p []byte) {
	class := bits.Len(uint(cap(p) - 1))
	p = p[:0]
	b.pools[class].Put(&p)
}

// Budget is memory that several readers or writers share, in bytes. It is safe for
// concurrent use. A nil Budget has no end.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of n bytes.
func NewBudget(n int64) *Budget {
	b := new(Budget)
	b.left.Store(n)
	return b
}

// take takes n bytes, if they are there.
func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

// has reports whether n bytes are there.
func (b *Budget) has(n int64) bool { return b == nil || b.left.Load() >= n }

// overdraw takes n bytes, whether they are there or not.
func (b *Budget) overdraw(n int64) {
	if b != nil {
		b.left.Add(-n)
	}
}

// give returns n bytes.
func (b *Budget) give(n int64) { b.overdraw(-n) }
