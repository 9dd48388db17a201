package cvmfs

import (
	"path"
	"sync"
)

const (
	// smallFile is up to which size a file is fetched before it is opened, in bytes.
	smallFile = 256 << 10
	// firstWindow and lastWindow are how many files a reader is kept ahead of: few
	// when it may yet stop, more with each that it opens.
	firstWindow, lastWindow = 4, 128
	// nearBy is how many entries a reader may skip and still be taken for one that
	// reads the directory through.
	nearBy = 8
	// maxBarren bounds the directories that are listed without finding a small file.
	maxBarren = 32
)

// ahead fetches small files that will be opened soon, so that a reader who opens one
// after the other (tar, cp, grep, an import of many modules) does not wait for a round
// trip each time. It acts only on directories that were listed: whoever opens a few
// of their files in order is taken for a reader of all of them, and whoever lists two
// directories of one parent for a reader of the whole tree.
type ahead struct {
	repo *Repository
	work sync.WaitGroup // streams that are being extended

	mu sync.Mutex // guards the plan of every listing, and every stream
}

// plan is what ahead knows of a directory.
type plan struct {
	listed    bool    // somebody read the directory
	descended int     // how many of its directories somebody read
	last      int     // the entry opened last; -1 for none
	stream    *stream // who comes through it
	place     []int   // of each entry in the stream, from 1
}

// stream is a walk through the tree, ahead of a reader.
type stream struct {
	pos, next int      // place of the file opened last, and of the one planned last
	window    int      // how far next may be ahead of pos
	stack     []cursor // where the walk is, innermost last
	walks     bool     // it goes down into directories
	busy      bool     // it is being extended
}

// cursor is the next entry of a directory.
type cursor struct {
	dir *listing
	i   int
}

func newAhead(r *Repository) *ahead { return &ahead{repo: r} }

// close waits for what is being planned; the fetcher's context has ended.
func (a *ahead) close() { a.work.Wait() }

// listed says that somebody reads a directory.
func (a *ahead) listed(l *listing) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.listed {
		return
	}
	l.listed = true
	if parent := a.parent(l); parent != nil {
		parent.descended++
	}
}

// parent is the listing of the directory above, or nil. mu is held.
func (a *ahead) parent(l *listing) *listing {
	if l.path == "" {
		return nil
	}
	return a.repo.listings.get(parentOf(l.path))
}

// parentOf is the directory above; the root is "".
func parentOf(p string) string {
	if d := path.Dir(p); d != "/" {
		return d
	}
	return ""
}

// opened says that the file at p is opened.
func (a *ahead) opened(p string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.repo.listings.get(parentOf(p))
	if l == nil || !l.listed {
		return
	}
	i, ok := l.find(path.Base(p))
	if !ok {
		return
	}
	s := l.stream
	if s != nil && l.place[i] > 0 {
		s.pos = max(s.pos, l.place[i])
		s.window = min(2*s.window, lastWindow)
	} else if l.begins(i) {
		s = &stream{window: firstWindow, stack: []cursor{{l, i + 1}}}
		l.joins(s)
	}
	l.last = i
	if s != nil && !s.busy && len(s.stack) > 0 && s.next-s.pos <= s.window/2 {
		s.busy = true
		a.work.Go(func() { a.extend(s) })
	}
}

// begins says whether opening entry i looks like the beginning of a reading of all.
func (l *listing) begins(i int) bool {
	if l.last >= 0 {
		return i > l.last && i-l.last <= nearBy
	}
	before := 0
	for j := range i {
		if !l.entries[j].isDir() {
			before++
		}
	}
	return before <= nearBy
}

// joins makes the directory one of s.
func (l *listing) joins(s *stream) {
	if l.stream != s {
		l.stream, l.place = s, make([]int, len(l.entries))
	}
}

// extend plans until the stream is ahead far enough.
func (a *ahead) extend(s *stream) {
	barren := 0
	for {
		w, down := a.step(s)
		switch {
		case w != nil:
			a.repo.fetch.prefetch(*w)
			barren = 0
		case down != nil:
			if barren++; barren > maxBarren || !a.descend(s, *down) {
				a.stop(s)
				return
			}
		default:
			return
		}
	}
}

// step goes to the next file or directory of the walk; neither is returned when the
// stream is ahead far enough, or at its end.
func (a *ahead) step(s *stream) (*want, *spot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for s.next-s.pos < s.window && a.repo.fetch.ctx.Err() == nil {
		top := len(s.stack) - 1
		if top < 0 {
			break
		}
		c := &s.stack[top]
		if c.i >= len(c.dir.entries) {
			a.climb(s, c.dir)
			continue
		}
		e := &c.dir.entries[c.i]
		c.i++
		switch {
		case e.whole() && e.size <= smallFile:
			s.next++
			c.dir.joins(s)
			c.dir.place[c.i-1] = s.next
			w := e.want()
			return &w, nil
		case e.isDir() && (s.walks || c.dir.descended >= 2):
			s.walks = true
			down := c.dir.below(e)
			return nil, &down
		}
	}
	s.busy = false
	return nil, nil
}

// climb leaves a directory, for the one above when the reader seems to do so too.
func (a *ahead) climb(s *stream, done *listing) {
	s.stack = s.stack[:len(s.stack)-1]
	if len(s.stack) > 0 {
		return
	}
	parent := a.parent(done)
	if parent == nil || parent.descended < 2 {
		return
	}
	if i, ok := parent.find(path.Base(done.path)); ok {
		s.walks = true
		s.stack = append(s.stack, cursor{parent, i + 1})
	}
}

// descend goes into a directory.
func (a *ahead) descend(s *stream, down spot) bool {
	down, err := a.repo.tree.enter(a.repo.fetch.ctx, down)
	if err != nil {
		return false // whoever really goes there will be told
	}
	l, err := a.repo.list(a.repo.fetch.ctx, down)
	if err != nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.stack = append(s.stack, cursor{l, 0})
	return true
}

// stop ends a stream's planning.
func (a *ahead) stop(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.stack, s.busy = nil, false
}
