package cache

import (
	"sync"
	"time"
)

// Entry is a name in a directory and what is known of it.
type Entry[V any] struct {
	Name  string
	Value V
}

// Listing is all that a directory held at some moment. It does not change, and is
// safe for concurrent use.
type Listing[V any] struct {
	Entries []Entry[V]
	taken   uint64    // the directory's count of changes when the listing was asked for
	asked   time.Time // when that was
	until   time.Time // when it is not believed any more

	once  sync.Once
	index map[string]int // made at the first look-up
}

// Find returns what the listing says of name.
func (l *Listing[V]) Find(name string) (v V, ok bool) {
	l.once.Do(func() {
		l.index = make(map[string]int, len(l.Entries))
		for i := range l.Entries {
			l.index[l.Entries[i].Name] = i
		}
	})
	i, ok := l.index[name]
	if !ok {
		return v, false
	}
	return l.Entries[i].Value, true
}

// Asked is when the listing was asked for.
func (l *Listing[V]) Asked() time.Time { return l.asked }

// Left is for how long the listing is still believed; not at all when it is not
// positive.
func (l *Listing[V]) Left() time.Duration { return time.Until(l.until) }

// Answer is what a Directory says of a name.
type Answer int

// The answers: nothing is known; the name is there; the name is not there.
const (
	Unknown Answer = iota
	Present
	Absent
)

// Directory remembers the newest listing of one directory, and which names were
// changed here since. It is safe for concurrent use; the zero Directory is ready.
type Directory[V any] struct {
	mu      sync.Mutex
	newest  *Listing[V]
	changes uint64            // counts
	changed map[string]uint64 // the change that touched a name last
	readers int               // listings in use
}

// perEntry is for how much longer a listing is believed for each of its entries.
const perEntry = 50 * time.Microsecond

// Begin is called before a listing is asked for; its result goes to Finish. The
// listing is in use until End.
func (d *Directory[V]) Begin() *Listing[V] {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers++
	return &Listing[V]{taken: d.changes, asked: time.Now()}
}

// Finish makes l with its entries the newest listing, believed for ttl from now on, and
// a little longer if it is long: who asked for it wants to look at each entry.
func (d *Directory[V]) Finish(l *Listing[V], entries []Entry[V], ttl time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l.Entries = entries
	l.until = time.Now().Add(ttl + time.Duration(len(entries))*perEntry)
	if d.newest == nil || !l.asked.Before(d.newest.asked) {
		d.newest = l
	}
}

// End tells that a listing that Begin made is no longer in use.
func (d *Directory[V]) End() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.readers--
	d.prune()
}

// prune forgets what nobody can ask for any more.
func (d *Directory[V]) prune() {
	if d.readers > 0 {
		return
	}
	if d.newest != nil && d.newest.Left() <= 0 {
		d.newest = nil
	}
	if d.newest == nil {
		d.changed = nil
	}
}

// Change tells that names were made, removed or replaced here.
func (d *Directory[V]) Change(names ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.changes++
	d.prune()
	if d.newest == nil && d.readers == 0 {
		return
	}
	if d.changed == nil {
		d.changed = make(map[string]uint64)
	}
	for _, name := range names {
		d.changed[name] = d.changes
	}
}

// Lookup answers from the newest listing while it is believed. l is that listing,
// unless the answer is Unknown.
func (d *Directory[V]) Lookup(name string) (v V, l *Listing[V], a Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.prune()
	l = d.newest
	if l == nil || l.Left() <= 0 || d.changed[name] > l.taken {
		return v, nil, Unknown
	}
	if v, ok := l.Find(name); ok {
		return v, l, Present
	}
	return v, l, Absent
}

// Fresh is the newest listing if it is believed and nothing was changed here since
// it was asked for. It is in use until End.
func (d *Directory[V]) Fresh() (*Listing[V], bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest == nil || d.newest.taken != d.changes || d.newest.Left() <= 0 {
		return nil, false
	}
	d.readers++
	return d.newest, true
}

// Changed reports whether name was changed here since l was asked for. l must be
// in use.
func (d *Directory[V]) Changed(l *Listing[V], name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed[name] > l.taken
}
