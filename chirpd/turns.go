package chirpd

import "sync"

// dirID names a directory.
type dirID struct{ dev, ino uint64 }

// turns lets those who change one directory's ACL wait for each other, and nobody else.
type turns struct {
	mu   sync.Mutex // guards busy
	busy map[dirID]*turn
}

type turn struct {
	sync.Mutex
	users int // who have it or wait for it
}

// take waits for the turn at id and returns the function that ends it.
func (t *turns) take(id dirID) (done func()) {
	t.mu.Lock()
	if t.busy == nil {
		t.busy = make(map[dirID]*turn)
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
