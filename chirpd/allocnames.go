package chirpd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/confine"
)

// removing runs remove, which takes away the object's name, and counts what that frees.
// Directories are removingDir's.
func (q *allocs) removing(a *confine.At, remove func() error) error {
	in := q.of(a.DirPath())
	if in == nil {
		return remove()
	}
	defer q.names.take(a.Path())()
	return q.removeIn(in, a, remove)
}

// removeIn is removing in an allocation, with the turn at the name.
func (q *allocs) removeIn(in *allocation, a *confine.At, remove func() error) error {
	info, err := a.Stat()
	if err != nil || !info.IsRegular() {
		return remove()
	}
	g := q.hold(in, &info)
	defer q.release(g)
	g.Lock()
	defer g.Unlock()
	if info, err = a.Stat(); err != nil {
		return err
	}
	if info.Nlink > 1 || !g.is(&info) {
		return remove()
	}
	q.detach(g)
	if err := remove(); err != nil {
		q.attach(g)
		return err
	}
	q.ends(g, info.Size)
	return nil
}

// detach hides a file whose last name goes from hold, before it does: its inode number
// may be another file's the next instant.
func (q *allocs) detach(g *grown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.files, g.id)
}

// attach undoes detach. Whoever has the turn at the only name knows that nobody else has
// opened the file meanwhile.
func (q *allocs) attach(g *grown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.files[g.id] = g
}

// shared says whether others than the caller hold the file too: it stays on disk then,
// when its last name goes.
func (q *allocs) shared(g *grown) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return g.users > 1
}

// is says whether the file is the one examined.
func (g *grown) is(info *confine.Info) bool { return g.id == dirID{info.Dev, info.Ino} }

// ends marks a file that has lost its last name: its bytes are free when nobody has it
// open for writing any more.
func (q *allocs) ends(g *grown, length int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	g.gone, g.length = true, length
}

// removingDir runs remove, which takes away an empty directory, and ends its allocation.
func (q *allocs) removingDir(dir string, remove func() error) error {
	if !q.any.Load() || !q.holds(dir) {
		return remove()
	}
	q.change.Lock()
	defer q.change.Unlock()
	if err := remove(); err != nil {
		return err
	}
	q.drop(func(a *allocation) bool { return a.dir == dir })
	return q.save()
}

// removeAttempts bounds how often a directory is emptied again that others fill.
const removeAttempts = 64

// removeTree is RemoveAll of an At where each file has to be counted. check is called
// before a directory's content is touched.
func (q *allocs) removeTree(ctx context.Context, a *confine.At, check func(*confine.At) error, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	info, err := a.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return q.removing(a, a.Unlink)
	}
	switch {
	case a.Name() == ".":
		return fmt.Errorf("the root of an export stays: %w", unix.EBUSY)
	case depth > maxDepth:
		return unix.ENAMETOOLONG
	}
	for range removeAttempts {
		if err = q.empty(ctx, a, check, depth); err != nil {
			return err
		}
		err = q.removingDir(a.Path(), a.Rmdir)
		if !errors.Is(err, unix.ENOTEMPTY) {
			break
		}
	}
	return err
}

// empty removes what is in a directory. What vanishes meanwhile is gone all the same.
func (q *allocs) empty(ctx context.Context, a *confine.At, check func(*confine.At) error, depth int) error {
	inside, err := a.Enter()
	if err != nil {
		return err
	}
	defer inside.Close()
	if err := check(inside); err != nil {
		return err
	}
	var names []string
	err = inside.ReadDir(false, func(e *confine.Entry) error {
		names = append(names, string(e.Name))
		return nil
	})
	for _, name := range names {
		if err != nil {
			break
		}
		var child *confine.At
		if child, err = inside.Child(name); err == nil {
			err = q.removeTree(ctx, child, check, depth+1)
			child.Close()
		}
		if errors.Is(err, unix.ENOENT) {
			err = nil
		}
	}
	return err
}

// renaming runs a rename. What would change the allocation that something lies in is
// refused as if that were another device, so that clients copy.
func (q *allocs) renaming(from, to *confine.At, rename func() error) error {
	if !q.any.Load() {
		return rename()
	}
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() && q.holds(from.Path()) {
		return fmt.Errorf("%s is an allocation, or holds one: %w", from.Path(), unix.EBUSY)
	}
	if q.of(from.DirPath()) != q.of(to.DirPath()) {
		return unix.EXDEV
	}
	in := q.of(to.DirPath())
	if in == nil {
		return rename()
	}
	defer q.takeBoth(from.Path(), to.Path())()
	there, err := to.Stat()
	switch {
	case err == nil && there.IsDir():
		return q.removingDir(to.Path(), rename)
	case err == nil && there.Ino == info.Ino && there.Dev == info.Dev:
		return rename() // two names of one file: nothing happens
	}
	return q.removeIn(in, to, rename)
}

// takeBoth takes the turns at two names, always in the same order.
func (q *allocs) takeBoth(a, b string) (done func()) {
	if a == b {
		return q.names.take(a)
	}
	first, second := q.names.take(min(a, b)), q.names.take(max(a, b))
	return func() {
		second()
		first()
	}
}

// linking runs a link, and refuses another name for a file in another allocation.
func (q *allocs) linking(old, to *confine.At, link func() error) error {
	in := q.of(old.DirPath())
	if in != q.of(to.DirPath()) {
		return unix.EXDEV
	}
	if in != nil {
		defer q.takeBoth(old.Path(), to.Path())()
	}
	return link()
}

// holds says whether a directory is an allocation, or one lies below it.
func (q *allocs) holds(dir string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.ContainsFunc(q.list, func(a *allocation) bool { return isBelow(a.dir, dir) })
}
