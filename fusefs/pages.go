package fusefs

import (
	"time"

	"skeletonkey/chirpd/wire"
)

// settled is how old a change must be before a second one is sure to show: times
// are whole seconds, so a file that changes twice within one looks the same after
// both. Clocks of client and server may differ by nearly as much.
const settled = time.Minute

// pages says to which state of a file the pages in the kernel's cache belong.
type pages struct {
	valid bool
	state wire.Stat // of the file
	first time.Time // when that state was first seen
	since time.Time // when the cache was last emptied
	told  wire.Stat // what the kernel was last told
}

// opened notes that the file is being opened in the state st, and reports whether
// the kernel may keep its pages, and whether it believes in attributes that are
// wrong.
func (p *pages) opened(st *wire.Stat) (keep, wrong bool) {
	now := time.Now()
	if !p.valid || !sameState(&p.state, st) {
		p.first = now
	} else {
		keep = p.sure()
	}
	p.valid, p.state = true, *st
	if !keep {
		p.since = now
	}
	return keep, !sameState(&p.told, st) || p.told.Mode != st.Mode
}

// sure reports whether a change of the file after the cache was emptied would have
// made another state.
func (p *pages) sure() bool {
	changed := time.Unix(max(p.state.Mtime, p.state.Ctime), 0)
	return p.since.Sub(changed) > settled || p.since.Sub(p.first) > 2*time.Second
}
