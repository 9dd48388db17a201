package confine

import (
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks bounds the symbolic links of one walk, as the kernel does.
const maxLinks = 40

// Walk finds the object that path names and returns its At, which the caller
// closes. The object itself need not exist; the directory that holds it must.
//
// With follow, a last name that is a symbolic link is resolved, so that the At
// names the target in the target's real directory; a dangling link gives an At for
// the missing target. Without follow the At names the link itself. Links in the
// middle of a path are always resolved.
func (r *Root) Walk(path string, follow bool) (*At, error) {
	if !r.acquire() {
		return nil, pathError("walk", path, fs.ErrClosed)
	}
	a, err := r.walk(path, follow)
	if err != nil {
		r.release()
		return nil, pathError("walk", path, err)
	}
	return a, nil
}

func (r *Root) walk(path string, follow bool) (*At, error) {
	rel := strings.TrimPrefix(path, "/")
	plain, err := examine(rel)
	if err != nil {
		return nil, err
	}
	w := walker{root: r, fd: r.fd}
	if plain && r.fast {
		a, err := w.leap(rel, follow)
		if a != nil || err != nil {
			return a, err
		}
	}
	if w.todo == nil {
		w.push(rel)
	}
	return w.run(follow)
}

// examine refuses private names and says whether a relative path is plain: names
// only, none of them empty, "." or "..".
func examine(rel string) (plain bool, err error) {
	plain = rel != ""
	for more := true; more; {
		var name string
		name, rel, more = strings.Cut(rel, "/")
		if IsPrivate(name) {
			return false, ErrPrivate
		}
		if name == "" || name == "." || name == ".." {
			plain = false
		}
	}
	return plain, nil
}

// walker is the state of one walk. fd is the directory reached so far: the root's
// own descriptor, or one that the walker must close or hand on.
type walker struct {
	root  *Root
	fd    int
	done  []string // components of fd's path; real directories, all of them
	todo  []string // components ahead, the next one last
	links int
}

// leap opens the whole parent directory in one system call. It returns nothing
// where there is a link in the way; what it has reached by then stays in the walker.
func (w *walker) leap(rel string, follow bool) (*At, error) {
	dir, name := "", rel
	if i := strings.LastIndexByte(rel, '/'); i >= 0 {
		dir, name = rel[:i], rel[i+1:]
		fd, err := openBeneath(w.root.fd, dir)
		if isErrno(err, unix.ELOOP, unix.EXDEV, unix.EAGAIN, unix.ENOSYS, unix.ENAMETOOLONG) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		w.fd = fd
	}
	a := &At{root: w.root, fd: w.fd, dir: "/" + dir, name: name}
	if !follow || !a.isLink() {
		return a, nil
	}
	if dir != "" {
		w.done = strings.Split(dir, "/")
	}
	w.todo = append(w.todo, name)
	return nil, nil
}

// run walks what is ahead one component at a time, resolving links itself.
func (w *walker) run(follow bool) (*At, error) {
	for len(w.todo) > 0 {
		name := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		if name == ".." {
			if err := w.up(); err != nil {
				return nil, w.fail(err)
			}
			continue
		}
		if IsPrivate(name) {
			return nil, w.fail(ErrPrivate)
		}
		if len(w.todo) > 0 {
			if err := w.into(name); err != nil {
				return nil, w.fail(err)
			}
			continue
		}
		a := w.at(name)
		if !follow || !a.isLink() {
			return a, nil
		}
		if err := w.link(name); err != nil {
			return nil, w.fail(err)
		}
	}
	return w.last()
}

// last makes an At of a directory that the walk ended in without a name, after ".."
// or a link to the root.
func (w *walker) last() (*At, error) {
	if len(w.done) == 0 {
		return w.at("."), nil
	}
	name := w.done[len(w.done)-1]
	if err := w.up(); err != nil {
		return nil, w.fail(err)
	}
	return w.at(name), nil
}

func (w *walker) at(name string) *At {
	return &At{root: w.root, fd: w.fd, dir: "/" + strings.Join(w.done, "/"), name: name}
}

// into goes down into a directory, or resolves the link that stands in its place.
func (w *walker) into(name string) error {
	fd, err := openat(w.fd, name, dirFlags, 0)
	if isErrno(err, unix.ENOTDIR, unix.ELOOP) {
		return w.link(name)
	}
	if err != nil {
		return err
	}
	w.move(fd)
	w.done = append(w.done, name)
	return nil
}

// link puts the target of the link name in front of what is ahead.
func (w *walker) link(name string) error {
	target, err := readlinkat(w.fd, name)
	if err == unix.EINVAL {
		// Not a link: a file in the middle of a path, or, as the last name, a
		// link that was replaced this instant.
		if len(w.todo) > 0 {
			return unix.ENOTDIR
		}
		return ErrChanged
	}
	if err != nil {
		return err
	}
	if w.links++; w.links > maxLinks {
		return unix.ELOOP
	}
	if strings.HasPrefix(target, "/") {
		w.move(w.root.fd)
		w.done = w.done[:0]
	}
	w.push(target)
	return nil
}

func (w *walker) push(path string) {
	parts := strings.Split(path, "/")
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i] != "" && parts[i] != "." {
			w.todo = append(w.todo, parts[i])
		}
	}
}

// up goes to the parent directory by walking down to it again from the root. The
// kernel's ".." would lead out of the export when somebody moves the directory.
func (w *walker) up() error {
	if len(w.done) == 0 {
		return nil
	}
	w.done = w.done[:len(w.done)-1]
	fd, err := w.root.openDir(w.done)
	if err != nil {
		return err
	}
	w.move(fd)
	return nil
}

func (w *walker) move(fd int) {
	if w.fd != w.root.fd {
		unix.Close(w.fd)
	}
	w.fd = fd
}

func (w *walker) fail(err error) error {
	w.move(w.root.fd)
	return err
}

// openDir opens a directory by names that a walk found to be real directories.
func (r *Root) openDir(names []string) (int, error) {
	if r.fast && len(names) > 0 {
		fd, err := openBeneath(r.fd, strings.Join(names, "/"))
		if err == nil {
			return fd, nil
		}
	}
	fd := r.fd
	for _, name := range names {
		next, err := openat(fd, name, dirFlags, 0)
		if fd != r.fd {
			unix.Close(fd)
		}
		if isErrno(err, unix.ENOTDIR, unix.ELOOP, unix.ENOENT) {
			return -1, ErrChanged
		}
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}
