package installer

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// beneath is how every directory below the destination is reached: not above it,
// through no symbolic link.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

const pathDir = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW

// tree is the destination behind a descriptor. Paths below it are clean: names
// joined by "/", "" for the destination itself. It is for one goroutine.
type tree struct {
	root  int
	umask uint32
	// walk is set where the kernel has no openat2: then path by path, which is as
	// safe and slower.
	walk bool

	dirs  [16]cachedDir // the last parents
	clock uint64        // of their use
	later laterDirs
}

type cachedDir struct {
	path string
	fd   int
	used uint64 // 0 for an empty place
}

func openTree(dir string) (*tree, error) {
	fd, err := openAt(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &tree{root: fd, umask: currentUmask()}, nil
}

func (t *tree) close() {
	for i := range t.dirs {
		t.drop(&t.dirs[i])
	}
	unix.Close(t.root)
}

func (t *tree) drop(d *cachedDir) {
	if d.used != 0 {
		unix.Close(d.fd)
		*d = cachedDir{}
	}
}

// split cuts a clean path into the parent and the last name.
func split(path string) (parent, base string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// parentOf returns the descriptor of path's parent, which stays the tree's, and
// path's last name. Missing directories are made if create is set.
func (t *tree) parentOf(path string, create bool) (int, string, error) {
	dir, base := split(path)
	fd, err := t.dir(dir, create)
	return fd, base, err
}

// dir returns the descriptor of a directory; it stays the tree's and is good
// until the next call.
func (t *tree) dir(path string, create bool) (int, error) {
	if path == "" {
		return t.root, nil
	}
	t.clock++
	oldest := &t.dirs[0]
	for i := range t.dirs {
		d := &t.dirs[i]
		if d.used != 0 && d.path == path {
			d.used = t.clock
			return d.fd, nil
		}
		if d.used < oldest.used {
			oldest = d
		}
	}
	fd, err := t.open(path)
	if err == unix.ENOENT && create {
		if fd, err = t.makeParent(path); err == nil {
			return fd, nil // cached by makeParent
		}
	}
	if err != nil {
		return -1, dirError(path, err)
	}
	t.drop(oldest)
	*oldest = cachedDir{path, fd, t.clock}
	return fd, nil
}

// makeParent makes a directory that no member of its own has named so far.
func (t *tree) makeParent(path string) (int, error) {
	err := t.put(path, func(parent int, base string) error {
		err := unix.Mkdirat(parent, base, 0o777&^t.umask|0o700)
		if err == unix.EEXIST { // somebody else was faster
			return nil
		}
		return err
	})
	if err != nil {
		return -1, err
	}
	return t.dir(path, false)
}

// open opens a directory with O_PATH.
func (t *tree) open(path string) (int, error) {
	if !t.walk {
		fd, err := openResolved(t.root, path, pathDir, beneath)
		switch {
		case err == unix.ENOSYS:
			t.walk = true
		case err != unix.EACCES:
			return fd, err
		}
	}
	return t.openByWalk(path)
}

// openByWalk opens a directory name by name, and opens up those that forbid it.
func (t *tree) openByWalk(path string) (int, error) {
	at := t.root
	for i := 0; i <= len(path); {
		name := path[i:]
		if j := strings.IndexByte(name, '/'); j >= 0 {
			name = name[:j]
		}
		i += len(name) + 1
		fd, err := openAt(at, name, pathDir, 0)
		if at != t.root {
			unix.Close(at)
		}
		if err == nil {
			err = t.openUp(fd, path[:i-1])
		}
		if err != nil {
			if fd >= 0 {
				unix.Close(fd)
			}
			return -1, err
		}
		at = fd
	}
	return at, nil
}

// openUp gives us all rights in a directory of our own, until finish gives it its
// mode back. (An ordinary user unpacks the same archive again, and finds that the
// first time has left directories without write permission.)
func (t *tree) openUp(fd int, path string) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o700 == 0o700 || int(st.Uid) != os.Geteuid() {
		return nil
	}
	if err := chmodPath(fd, st.Mode&0o7777|0o700); err != nil {
		return err
	}
	return t.later.add(laterDir{path: path, mode: st.Mode & 0o777, mtime: noTime})
}

// put creates an object at path by make, in the place of an old file or link; it
// may call make several times. Missing parents are made.
func (t *tree) put(path string, make func(parent int, base string) error) error {
	parent, base, err := t.parentOf(path, true)
	if err != nil {
		return err
	}
	for range 8 { // others may work in the same place
		err = retry(func() error { return make(parent, base) })
		if err == unix.EEXIST {
			if err = remove(parent, base); err == nil {
				continue
			}
		}
		if err != unix.EACCES {
			return err
		}
		dir, _ := split(path)
		if dir == "" { // the destination's own mode is not ours to change
			return err
		}
		if err := t.openUp(parent, dir); err != nil {
			return err
		}
	}
	return err
}

// remove makes room for a new object: a file or a link goes, a directory stays.
func remove(parent int, base string) error {
	err := retry(func() error { return unix.Unlinkat(parent, base, 0) })
	switch err {
	case unix.ENOENT:
		return nil
	case unix.EISDIR:
		return fmt.Errorf("a directory is in the way: %w", unix.EEXIST)
	}
	return err
}

// dirError says what is wrong with a parent directory.
func dirError(path string, err error) error {
	switch err {
	case unix.ELOOP:
		return fmt.Errorf("%w: its parent %q leads through a symbolic link", ErrUnsafe, path)
	case unix.ENOTDIR:
		return fmt.Errorf("%w: its parent %q is not a directory, or a symbolic link", ErrUnsafe, path)
	case unix.EXDEV:
		return fmt.Errorf("%w: its parent %q leads outside", ErrUnsafe, path)
	}
	if _, ok := err.(unix.Errno); ok {
		return &os.PathError{Op: "open directory", Path: path, Err: err}
	}
	return err
}
