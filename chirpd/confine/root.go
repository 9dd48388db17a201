package confine

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// PrivatePrefix begins the names that only the server uses.
const PrivatePrefix = ".__"

// IsPrivate says whether a single name is one of the server's own.
func IsPrivate(name string) bool { return strings.HasPrefix(name, PrivatePrefix) }

// Options say how an export is opened.
type Options struct {
	// ReadOnly refuses every change with EROFS.
	ReadOnly bool
}

// Root is an exported tree. Its methods may be called from several goroutines.
type Root struct {
	fd       int
	id       fileID
	readOnly bool
	fast     bool // openat2 works here
	proc     bool // /proc/self/fd works here
	// refs counts the At values that use fd, and one for the Root itself: a
	// descriptor's number must not be given out again while one might use it.
	refs   atomic.Int64
	closed atomic.Bool
}

// Open opens the directory dir, following links in its name, as the root of an
// export. The caller closes the Root.
func Open(dir string, opts Options) (*Root, error) {
	fd, err := openat(unix.AT_FDCWD, dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, pathError("open export", dir, err)
	}
	info, err := statFd(fd)
	if err != nil {
		unix.Close(fd)
		return nil, pathError("open export", dir, err)
	}
	r := &Root{fd: fd, id: info.id(), readOnly: opts.ReadOnly}
	r.refs.Store(1)
	if probe, err := openBeneath(fd, "."); err == nil {
		r.fast = true
		unix.Close(probe)
	}
	var there unix.Stat_t
	err = unix.Stat(procPath(fd), &there)
	r.proc = err == nil && there.Ino == info.Ino
	return r, nil
}

// ReadOnly says whether the root refuses changes.
func (r *Root) ReadOnly() bool { return r.readOnly }

// Close gives up the root. At values that are still open stay usable, and the
// descriptor is closed with the last of them; new walks fail with fs.ErrClosed.
func (r *Root) Close() error {
	if r.closed.Swap(true) {
		return pathError("close", "/", fs.ErrClosed)
	}
	r.release()
	return nil
}

func (r *Root) acquire() bool {
	for !r.closed.Load() {
		n := r.refs.Load()
		if n > 0 && r.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

func (r *Root) release() {
	if r.refs.Add(-1) == 0 {
		unix.Close(r.fd)
	}
}

// doAttempts bounds how often Do walks again. Each loss needs somebody to swap the
// name within microseconds.
const doAttempts = 16

// Do walks to path, runs op with the At and closes it, and does so again, a bounded
// number of times, when op fails with ErrChanged. So op must have had no effect that
// matters a second time when it returns ErrChanged; every method of At keeps to that. op
// must not keep the At.
func (r *Root) Do(path string, follow bool, op func(*At) error) error {
	var err error
	for range doAttempts {
		var a *At
		if a, err = r.Walk(path, follow); err == nil {
			err = op(a)
			a.Close()
		}
		if !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return err
}

// procPath names a descriptor's object for calls that take only paths.
func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }
