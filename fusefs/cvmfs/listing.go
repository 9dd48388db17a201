package cvmfs

import (
	"container/list"
	"context"
	"slices"
	"strings"
	"sync"
)

// maxListed bounds the entries of all directories that are remembered.
const maxListed = 1 << 17

// listing is what is in a directory, by name. The entries do not change.
type listing struct {
	spot
	entries []entry
	plan    // guarded by ahead.mu
}

// find returns the place of a name.
func (l *listing) find(name string) (int, bool) {
	return slices.BinarySearchFunc(l.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
}

// listings remembers the directories that were used last.
type listings struct {
	mu    sync.Mutex
	byDir map[string]*list.Element // guarded by mu; of *listing
	used  *list.List               // guarded by mu; the one used last in front
	total int                      // guarded by mu; entries in all
}

func newListings() *listings {
	return &listings{byDir: make(map[string]*list.Element), used: list.New()}
}

// get returns the listing of a directory when it is there, else nil.
func (c *listings) get(path string) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byDir[path]
	if e == nil {
		return nil
	}
	c.used.MoveToFront(e)
	return e.Value.(*listing)
}

// add remembers a listing and returns it, or the one that somebody else has added.
func (c *listings) add(l *listing) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byDir[l.path]; e != nil {
		return e.Value.(*listing)
	}
	c.byDir[l.path] = c.used.PushFront(l)
	c.total += len(l.entries) + 1
	for c.total > maxListed && c.used.Len() > 1 {
		old := c.used.Remove(c.used.Back()).(*listing)
		delete(c.byDir, old.path)
		c.total -= len(old.entries) + 1
	}
	return l
}

// list returns what is in the directory s, which was entered.
func (r *Repository) list(ctx context.Context, s spot) (*listing, error) {
	if l := r.listings.get(s.path); l != nil {
		return l, nil
	}
	entries, err := r.tree.list(ctx, s)
	if err != nil {
		return nil, err
	}
	return r.listings.add(&listing{spot: s, entries: entries, plan: plan{last: -1}}), nil
}

// lookup returns the entry name of the directory s, which was entered; errNoEntry
// when there is none.
func (r *Repository) lookup(ctx context.Context, s spot, name string) (*entry, error) {
	if l := r.listings.get(s.path); l != nil {
		if i, ok := l.find(name); ok {
			return &l.entries[i], nil
		}
	}
	return r.tree.lookup(ctx, s, name) // what is hidden is in no listing
}
