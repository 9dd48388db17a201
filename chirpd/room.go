package chirpd

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/confine"
)

// This file is where writers ask for space: that of allocations, and what the server
// leaves free.

// writing readies a file that was opened for writing: it is counted from now on.
func (f *openFile) writing(in *allocation, info *confine.Info) {
	if in != nil {
		f.grown = f.ex.allocs.hold(in, info)
	}
}

// change runs what may alter the file's length, to end at most, a function of the
// length before.
func (f *openFile) change(end func(int64) int64, do func() error) error {
	if f.grown == nil {
		return do()
	}
	return f.ex.allocs.grow(f.grown, f.File, end, do)
}

// store writes at an offset, or at the end of a file opened for that.
func (f *openFile) store(p []byte, offset int64) (n int, err error) {
	if err := f.ex.spare(f.Statfs, int64(len(p))); err != nil {
		return 0, err
	}
	end := func(length int64) int64 {
		if f.append {
			return length + int64(len(p))
		}
		return max(length, offset+int64(len(p)))
	}
	err = f.change(end, func() (err error) {
		if f.append {
			n, err = f.Write(p)
		} else {
			n, err = f.pwrite(p, offset)
		}
		return err
	})
	return n, err
}

// setLength is Truncate.
func (f *openFile) setLength(length int64) error {
	return f.change(func(int64) int64 { return length }, func() error { return f.Truncate(length) })
}

// shut closes the file.
func (f *openFile) shut() error {
	if f.grown != nil { // first: the inode number may be another file's after the close
		f.ex.allocs.release(f.grown)
	}
	return f.Close()
}

// spare fails when n bytes more would leave less free than Config.FreeSpace.
func (x *export) spare(statfs func() (unix.Statfs_t, error), n int64) error {
	if x.free == 0 {
		return nil
	}
	st, err := statfs()
	if err != nil {
		return err
	}
	if st.Bsize > 0 && st.Bavail < math.MaxInt64/uint64(st.Bsize) && int64(st.Bavail)*st.Bsize-n < x.free {
		return fmt.Errorf("%d bytes are to be left free: %w", x.free, unix.ENOSPC)
	}
	return nil
}

// room is the space that a file takes which is put whole.
type room struct {
	ex    *export
	in    *allocation // nil: no allocation holds it
	lent  int64       // bytes of the file in its place, which it will free
	bytes int64       // that have come
	taken int64       // set aside for them
}

// roomFor begins a put at a.
func roomFor(a *place) *room {
	r := &room{ex: a.ex, in: a.ex.allocs.of(a.At.DirPath())}
	if r.in != nil {
		if info, err := a.Stat(); err == nil && info.IsRegular() {
			r.lent = info.Size
		}
	}
	return r
}

// write writes a piece of the file, if there is space.
func (r *room) write(p *confine.Put, b []byte) (int, error) {
	err := r.ex.spare(func() (st unix.Statfs_t, err error) {
		err = unix.Fstatfs(int(p.Fd()), &st)
		return st, err
	}, int64(len(b)))
	if err != nil {
		return 0, err
	}
	r.bytes += int64(len(b))
	if err := r.makeUp(); err != nil {
		return 0, err
	}
	return p.Write(b)
}

// makeUp sets aside what the file needs beyond what it was lent.
func (r *room) makeUp() error {
	more := r.bytes - r.lent - r.taken
	if r.in == nil || more <= 0 {
		return nil
	}
	if err := r.ex.allocs.take(r.in, more); err != nil {
		return err
	}
	r.taken += more
	return nil
}

// giveBack ends a put that failed; after commit it does nothing.
func (r *room) giveBack() {
	if r.taken > 0 {
		r.ex.allocs.settle(r.in, -r.taken)
		r.taken = 0
	}
}

// commit runs a put's commit, and counts what took whose place. What was lent may be
// another's by now: only what the file in its place frees this instant counts.
func (r *room) commit(a *confine.At, commit func() error) error {
	if r.in == nil {
		return commit()
	}
	q := &r.ex.allocs
	defer q.names.take(a.Path())()
	old, err := a.Stat()
	was := err == nil && old.IsRegular()
	var g *grown
	if was {
		g = q.hold(r.in, &old)
		defer q.release(g)
		g.Lock()
		defer g.Unlock()
		if old, err = a.Stat(); err != nil || !g.is(&old) {
			return confine.ErrChanged
		}
	}
	last := was && old.Nlink == 1
	if was && !(last && q.shared(g)) {
		r.lent = old.Size
	} else {
		r.lent = 0
	}
	if err := r.makeUp(); err != nil {
		return err
	}
	if last {
		q.detach(g)
	}
	if err := commit(); err != nil {
		if last {
			q.attach(g)
		}
		return err
	}
	delta := r.bytes - r.taken
	now, err := a.Stat()
	switch {
	case was && err == nil && g.is(&now): // written in place
		if delta -= old.Size; last {
			q.attach(g)
		}
	case last:
		q.ends(g, old.Size)
	}
	q.settle(r.in, delta)
	r.taken = 0
	return nil
}
