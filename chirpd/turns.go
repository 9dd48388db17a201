package chirpd

import "sync"

// dirID names a directory.
type dirID struct{ dev, ino uint64 }

// turns lets those who change one thing wait for each other, and nobody else.
type turns[K comparable] struct {
	mu   sync.Mutex // guards busy
	busy map[K]*turn
}

type turn struct {
	sync.Mutex
	users int // who have it or wait for it
}

// take waits for the turn at id and returns the function that ends it.
func (t *turns[K]) take(id K) (done func()) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy = make(map[K]*turn)
	}
	own := t.busy[id]
	if own == nil {
		own = new(turn)
		t.busy[id] = own
	}
	own.users++
	t.mu.Unlock()
	own.Lock()
	return func() {
		own.Unlock()
		t.mu.Lock()
		if own.users--; own.users == 0 {
			delete(t.busy, id)
		}
		t.mu.Unlock()
	}
}
