package chirpd

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// mkalloc makes a directory that has so many bytes of its own, which it takes from the
// allocation that holds it, if there is one.
func (s *session) mkalloc(r *wire.Mkalloc) error {
	return s.makeDir(r.Path, r.Mode, func(a *place, mkdir func() error) error {
		q := &a.ex.allocs
		if q.file == "" || a.ex.root.ReadOnly() {
			return fmt.Errorf("allocations are not in use here: %w", wire.InvalidRequest)
		}
		return q.create(a.At, r.Size, mkdir)
	})
}

// create makes an allocation in memory first, so that nothing gets into the directory
// uncounted, and acknowledges it when it is on disk.
func (q *allocs) create(a *confine.At, size int64, mkdir func() error) error {
	q.change.Lock()
	defer q.change.Unlock()
	if _, err := a.Stat(); err == nil {
		return unix.EEXIST
	}
	n := &allocation{dir: a.Path(), size: size}
	above := q.of(n.dir)
	if err := q.take(above, size); err != nil {
		return err
	}
	q.mu.Lock()
	q.list = append(q.list, n)
	q.sorted()
	q.mu.Unlock()
	err := mkdir()
	if err == nil {
		if err = q.save(); err != nil {
			_ = a.Rmdir() // the error that counts is the first
		}
	}
	if err != nil {
		q.drop(func(x *allocation) bool { return x == n })
	}
	return err
}

// drop ends an allocation and gives its size back to the one above.
func (q *allocs) drop(ends func(*allocation) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.IndexFunc(q.list, ends)
	if i < 0 {
		return
	}
	a := q.list[i]
	q.list = slices.Delete(q.list, i, i+1)
	q.sorted()
	if above := q.above(a); above != nil {
		above.used = max(0, above.used-a.size)
	}
}

// lsalloc tells which allocation holds a path, and how much of it is in use.
func (s *session) lsalloc(r *wire.Lsalloc) error {
	return s.find(r.Path, true, func(f *found) error {
		q := &f.ex.allocs
		a := q.of(f.At.Path())
		if a == nil {
			return fmt.Errorf("no allocation holds %s: %w", f.Path(), wire.InvalidRequest)
		}
		if f.missing == nil && f.rights == 0 {
			return &deniedError{0, f.Path()}
		}
		q.mu.Lock()
		size, used := a.size, a.used
		q.mu.Unlock()
		s.reply(0)
		s.out.write(wire.AppendPath(nil, f.ex.at(a.dir)))
		s.out.write(fmt.Appendf(nil, " %d %d\n", size, used))
		return nil
	})
}

// limit makes the space that a file system tells that of the allocation which holds a
// path.
func (q *allocs) limit(st *unix.Statfs_t, path string) {
	a := q.of(path)
	if a == nil || st.Bsize <= 0 {
		return
	}
	q.mu.Lock()
	size, left := uint64(a.size), uint64(max(0, a.size-a.used))
	q.mu.Unlock()
	block := uint64(st.Bsize)
	st.Blocks = min(st.Blocks, size/block)
	st.Bfree = min(st.Bfree, left/block)
	st.Bavail = min(st.Bavail, left/block)
}
