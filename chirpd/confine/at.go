package confine

import (
	"strings"

	"golang.org/x/sys/unix"
)

// At is a place in the tree: a directory, held open, and a name in it, which need
// not exist. The root itself, and a directory that was entered, have the name ".".
//
// Every method acts on the object of that name in that directory and follows no
// link. The methods whose names end in Private or Dir concern the containing
// directory itself. An At is used by one goroutine at a time. Its owner closes it.
type At struct {
	root *Root
	fd   int
	dir  string // virtual path of fd
	name string
	lent bool // fd belongs to somebody else

	// info, when known, is what a walk saw of the object an instant ago.
	info  Info
	known bool
}

// Path is the object's path as clients see it, with every link resolved.
func (a *At) Path() string {
	switch {
	case a.name == ".":
		return a.dir
	case a.dir == "/":
		return "/" + a.name
	}
	return a.dir + "/" + a.name
}

// DirPath is the path of the containing directory; of the object itself where the
// name is ".".
func (a *At) DirPath() string { return a.dir }

// Name is the object's name in its directory, or ".".
func (a *At) Name() string { return a.name }

// IsRoot says whether the At is the root of the export.
func (a *At) IsRoot() bool { return a.name == "." && a.dir == "/" }

// Close gives up the directory. It may be called twice; nothing else may be called
// after it.
func (a *At) Close() {
	if a.fd < 0 || a.lent {
		return
	}
	if a.fd != a.root.fd {
		unix.Close(a.fd)
	}
	a.fd = -1
	a.root.release()
}

// Enter opens the directory that the At names and returns an At for it with the name
// ".", so that its private files can be reached and what is listed afterwards is the
// directory that was checked. The caller closes both. Not a directory: ENOTDIR, or
// ErrChanged for a link.
func (a *At) Enter() (*At, error) {
	if a.fd < 0 {
		return nil, a.fail("enter", unix.EBADF)
	}
	a.root.refs.Add(1) // never from zero: a has one
	if a.IsRoot() {
		return &At{root: a.root, fd: a.root.fd, dir: "/", name: "."}, nil
	}
	fd, err := openat(a.fd, a.name, dirFlags, 0)
	if err != nil {
		a.root.release()
		return nil, a.fail("enter", a.noDir(err))
	}
	return &At{root: a.root, fd: fd, dir: a.Path(), name: "."}, nil
}

// Child gives an At for a name in the directory that a, from Enter, is inside of. The
// caller closes both. A name that is none, or private, is EINVAL.
func (a *At) Child(name string) (*At, error) {
	if err := a.childName(name); err != nil {
		return nil, a.fail("child", err)
	}
	a.root.refs.Add(1) // never from zero: a has one
	if a.fd == a.root.fd {
		return &At{root: a.root, fd: a.fd, dir: "/", name: name}, nil
	}
	fd, err := openat(a.fd, ".", dirFlags, 0)
	if err != nil {
		a.root.release()
		return nil, a.fail("child", err)
	}
	return &At{root: a.root, fd: fd, dir: a.dir, name: name}, nil
}

// Lend is Child without a descriptor of its own: the At that it gives is used only
// while a is open, and need not be closed.
func (a *At) Lend(name string) (*At, error) {
	if err := a.childName(name); err != nil {
		return nil, a.fail("child", err)
	}
	return &At{root: a.root, fd: a.fd, dir: a.dir, name: name, lent: true}, nil
}

// Retain gives an At for the containing directory, with the name ".", which takes over
// a's descriptor: it is open when a is closed, and a is used only while it is open. The
// caller closes it.
func (a *At) Retain() *At {
	kept := &At{root: a.root, fd: a.fd, dir: a.dir, name: ".", lent: a.lent}
	a.lent = true
	return kept
}

func (a *At) childName(name string) error {
	switch {
	case a.name != ".", name == "", name == ".", name == "..", IsPrivate(name), strings.ContainsAny(name, "/\x00"):
		return unix.EINVAL
	case a.fd < 0:
		return unix.EBADF
	}
	return nil
}

// Nearest finds the closest directory above the containing one, up to the root, that
// holds the private file name, and returns an At for that directory with the name
// ".", or ENOENT when there is none. The caller closes it. The way up is that of the
// real directories; ErrChanged when it does not end at the root because somebody
// moves them.
func (a *At) Nearest(name string) (*At, error) {
	if err := privateName(name); err != nil {
		return nil, a.fail("nearest", err)
	}
	if a.fd < 0 {
		return nil, a.fail("nearest", unix.EBADF)
	}
	a.root.refs.Add(1)
	found, err := a.climb(name)
	if err != nil {
		a.root.release()
		return nil, a.fail("nearest", err)
	}
	return found, nil
}

// climb goes up by ".." and remembers the first directory that has the file, but gives
// it back only when the way has ended at the export's root, after as many steps as
// there were names: otherwise the directory may lie outside by now.
func (a *At) climb(name string) (*At, error) {
	var found *At
	fd, err := a.fd, error(nil)
	for dir := a.dir; dir != "/" && err == nil; {
		var up int
		if up, err = openat(fd, "..", dirFlags, 0); err != nil {
			break
		}
		a.drop(fd)
		fd, dir = up, parentOf(dir)
		if found == nil {
			found, err = a.holder(fd, dir, name)
		}
	}
	if err == nil {
		err = a.root.isRoot(fd)
	}
	a.drop(fd)
	if err == nil && found == nil {
		err = unix.ENOENT
	}
	if err != nil && found != nil {
		unix.Close(found.fd)
	}
	return found, err
}

// holder makes an At for a directory if it has the file, with a descriptor of its own.
func (a *At) holder(fd int, dir, name string) (*At, error) {
	if _, err := statAt(fd, name); err == unix.ENOENT {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	own, err := openat(fd, ".", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	return &At{root: a.root, fd: own, dir: dir, name: "."}, nil
}

// drop closes a descriptor that climb has opened.
func (a *At) drop(fd int) {
	if fd != a.fd {
		unix.Close(fd)
	}
}

func (r *Root) isRoot(fd int) error {
	info, err := statFd(fd)
	if err != nil {
		return err
	}
	if info.id() != r.id {
		return ErrChanged
	}
	return nil
}

func parentOf(dir string) string {
	i := strings.LastIndexByte(dir, '/')
	if i <= 0 {
		return "/"
	}
	return dir[:i]
}

// Stat examines the object: a link itself, not what it points to.
func (a *At) Stat() (Info, error) {
	info, err := a.peek()
	a.known = false
	return info, a.fail("stat", err)
}

// StatDir examines the containing directory, which is what ".." means in a listing
// of the object. (The root is its own parent.)
func (a *At) StatDir() (Info, error) {
	info, err := statFd(a.fd)
	return info, a.fail("stat", err)
}

// peek is Stat with bare errors; what the walk saw answers it at no cost.
func (a *At) peek() (Info, error) {
	if a.known {
		return a.info, nil
	}
	return statAt(a.fd, a.name)
}

// isLink looks at the object during a walk. Whatever else is wrong with it is found
// again by the operation itself.
func (a *At) isLink() bool {
	var err error
	a.info, err = statAt(a.fd, a.name)
	a.known = err == nil
	return a.known && a.info.IsLink()
}

// change begins every operation that changes something.
func (a *At) change(op string) error {
	a.known = false
	if a.root.readOnly {
		return a.fail(op, unix.EROFS)
	}
	return nil
}

// noDir gives the reason why an object was not opened as a directory: the kernel says
// ENOTDIR for a link, too.
func (a *At) noDir(err error) error {
	if isErrno(err, unix.ENOTDIR, unix.ELOOP) {
		if info, e := statAt(a.fd, a.name); e == nil && info.IsLink() {
			return ErrChanged
		}
		return unix.ENOTDIR
	}
	return err
}

func (a *At) fail(op string, err error) error { return pathError(op, a.Path(), err) }
