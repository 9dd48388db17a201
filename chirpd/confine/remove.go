package confine

import (
	"context"
	"strconv"

	"golang.org/x/sys/unix"
)

// Rmdir removes the object, a directory with nothing in it but private files, which go
// with it. Otherwise it is ENOTEMPTY, and nothing has been removed.
func (a *At) Rmdir() error {
	if err := a.change("rmdir"); err != nil {
		return err
	}
	if a.name == "." {
		return a.fail("rmdir", unix.EBUSY)
	}
	return a.fail("rmdir", rmdir(a.fd, a.name))
}

// rmdir moves a directory's private files away, removes it, and then them: the kernel
// decides whether it is empty, and when somebody has put a file there, they go back.
func rmdir(parent int, name string) error {
	err := unlinkat(parent, name, unix.AT_REMOVEDIR)
	if !isErrno(err, unix.ENOTEMPTY, unix.EEXIST) {
		return err
	}
	fd, err := openat(parent, name, listFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	names, err := onlyPrivate(fd)
	if err != nil {
		return err
	}
	aside := tempName("rmdir") + "."
	moved := 0
	for ; moved < len(names) && err == nil; moved++ {
		err = renameat(fd, names[moved], parent, aside+strconv.Itoa(moved), 0)
		if err == unix.ENOENT {
			err = nil
		}
	}
	if err == nil {
		err = unlinkat(parent, name, unix.AT_REMOVEDIR)
	}
	for i, old := range names[:moved] {
		if err == nil || putBack(parent, aside+strconv.Itoa(i), fd, old) == unix.EEXIST {
			removePrivate(parent, aside+strconv.Itoa(i))
		}
	}
	return err
}

// putBack gives a private file its place again, unless somebody has written a newer one.
func putBack(parent int, aside string, dir int, name string) error {
	err := renameat(parent, aside, dir, name, unix.RENAME_NOREPLACE)
	if isErrno(err, unix.EINVAL, unix.ENOSYS) {
		err = renameat(parent, aside, dir, name, 0)
	}
	return err
}

// removePrivate removes what is left of something private, a directory too.
func removePrivate(dir int, name string) error {
	err := unlinkat(dir, name, 0)
	if !isErrno(err, unix.EISDIR, unix.EPERM) {
		return err
	}
	r := remover{ctx: context.Background(), base: dir, fd: dir}
	return r.tree(name)
}

// seemsEmpty says whether a directory holds nothing but private files.
func seemsEmpty(parent int, name string) error {
	fd, err := openat(parent, name, listFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = onlyPrivate(fd)
	return err
}

// onlyPrivate lists a directory's private files, or gives ENOTEMPTY when it holds
// anything else.
func onlyPrivate(fd int) ([]string, error) {
	var names []string
	visible := false
	err := scan(fd, func(d *dirent) bool {
		name := string(d.name)
		visible = !IsPrivate(name)
		names = append(names, name)
		return !visible
	})
	if err == nil && visible {
		err = unix.ENOTEMPTY
	}
	return names, err
}

// RemoveAll removes the object and, if it is a directory, all below it, whatever the
// depth, with a bounded number of descriptors and without following a link.
//
// Before a directory's content is touched, check is called with an At for it with the
// name ".", whose private files it may read; its error stops the removal and is
// returned. It must not keep the At. A directory loses its private files last, so that
// what is left of a removal that stops has the permissions it had. ctx ends it between
// two files.
func (a *At) RemoveAll(ctx context.Context, check func(dir *At) error) error {
	if err := a.change("rmall"); err != nil {
		return err
	}
	if a.name == "." {
		return a.fail("rmall", unix.EBUSY)
	}
	err := unlinkat(a.fd, a.name, 0)
	if !isErrno(err, unix.EISDIR, unix.EPERM) {
		return a.fail("rmall", err)
	}
	r := remover{ctx: ctx, base: a.fd, fd: a.fd, path: a.dir, root: a.root, check: check}
	err = r.tree(a.name)
	if r.refused != nil {
		return r.refused
	}
	return a.fail("rmall", err)
}

// remover empties a tree from the bottom. It holds one directory at a time and goes back
// by "..", which must lead to the directory that it came from.
type remover struct {
	ctx     context.Context
	base    int // where it starts; not its own
	fd      int // the directory in hand: base, or its own
	levels  []level
	root    *Root
	path    string // virtual path of fd, for check
	check   func(dir *At) error
	refused error // what check said
}

// level is a directory on the way down to the one in hand.
type level struct {
	name    string   // its name in its parent
	parent  fileID   // the parent
	path    string   // the parent's virtual path
	pending []string // directories seen in it, still to be removed
}

// removeBatch bounds the names of directories that are remembered for each level.
const removeBatch = 1024

// removeAttempts bounds how often a directory is emptied again that others fill.
const removeAttempts = 64

// tree removes the directory name in base.
func (r *remover) tree(name string) error {
	defer func() { r.hold(r.base) }()
	if err := r.down(name); err != nil {
		return err
	}
	attempts := 0
	for len(r.levels) > 0 {
		top := &r.levels[len(r.levels)-1]
		if len(top.pending) == 0 {
			if err := r.files(top); err != nil {
				return err
			}
		}
		if n := len(top.pending); n > 0 {
			name := top.pending[n-1]
			top.pending = top.pending[:n-1]
			if err := r.down(name); err != nil && err != unix.ENOENT {
				return err
			}
			continue
		}
		err := r.up()
		if err == unix.ENOTEMPTY && attempts < removeAttempts {
			attempts++
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// down takes a directory below in hand. Something else that stands there is unlinked.
func (r *remover) down(name string) error {
	parent, err := statFd(r.fd)
	if err != nil {
		return err
	}
	fd, err := openat(r.fd, name, listFlags, 0)
	if isErrno(err, unix.ENOTDIR, unix.ELOOP) {
		return unlinkat(r.fd, name, 0)
	}
	if err != nil {
		return err
	}
	r.levels = append(r.levels, level{name: name, parent: parent.id(), path: r.path})
	r.hold(fd)
	if r.check == nil {
		return nil
	}
	if r.path != "/" {
		r.path += "/"
	}
	r.path += name
	r.refused = r.check(&At{root: r.root, fd: fd, dir: r.path, name: ".", lent: true})
	return r.refused
}

// files unlinks what is not a directory in the one in hand and remembers directories,
// until there is nothing left or enough to do. Private files stay.
func (r *remover) files(top *level) error {
	for range removeAttempts {
		if _, err := unix.Seek(r.fd, 0, unix.SEEK_SET); err != nil {
			return err
		}
		removed := false
		var failed error
		err := scan(r.fd, func(d *dirent) bool {
			name := string(d.name)
			if IsPrivate(name) {
				return true
			}
			if failed = r.ctx.Err(); failed != nil {
				return false
			}
			if d.kind != unix.DT_DIR {
				failed = unlinkat(r.fd, name, 0)
				removed = true
			}
			if d.kind == unix.DT_DIR || isErrno(failed, unix.EISDIR) {
				top.pending = append(top.pending, name)
				failed = nil
			}
			if failed == unix.ENOENT {
				failed = nil
			}
			return failed == nil && len(top.pending) < removeBatch
		})
		if failed != nil {
			err = failed
		}
		// A file system may leave names out of a listing while others vanish.
		if err != nil || len(top.pending) > 0 || !removed {
			return err
		}
	}
	return nil
}

// up goes back to the parent and removes the directory that was in hand. ENOTEMPTY: it
// is in hand again, as somebody has put something there.
func (r *remover) up() error {
	top := r.levels[len(r.levels)-1]
	fd, err := openat(r.fd, "..", listFlags, 0)
	if err != nil {
		return err
	}
	parent, err := statFd(fd)
	if err == nil && parent.id() != top.parent {
		err = ErrChanged
	}
	if err == nil {
		err = rmdir(fd, top.name)
		if err == unix.ENOENT {
			err = nil
		}
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	r.hold(fd)
	r.levels = r.levels[:len(r.levels)-1]
	r.path = top.path
	return nil
}

func (r *remover) hold(fd int) {
	if r.fd != r.base {
		unix.Close(r.fd)
	}
	r.fd = fd
}
