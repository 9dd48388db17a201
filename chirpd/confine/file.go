package confine

import (
	"os"

	"golang.org/x/sys/unix"
)

// File is an open regular file. The methods of os.File that read, write, sync and
// close are used as they are; those defined here take the place of os.File's own,
// because they keep the promises of this package.
//
// A file opened with O_APPEND is written with Write: os.File refuses WriteAt there.
type File struct {
	*os.File
	path     string
	readOnly bool
}

// The flags that OpenFile takes.
const openFlags = unix.O_ACCMODE | unix.O_CREAT | unix.O_EXCL | unix.O_TRUNC | unix.O_APPEND | unix.O_SYNC

// openAttempts bounds how often an open starts again when the name appears or vanishes
// between looking at it and opening it.
const openAttempts = 8

// OpenFile opens the object, a regular file, with flags out of unix.O_RDONLY, O_WRONLY,
// O_RDWR, O_CREAT, O_EXCL, O_TRUNC, O_APPEND and O_SYNC (others are EINVAL), and says
// what it is; a new file gets exactly the permissions of mode. The caller closes it.
//
// It never blocks and opens nothing but regular files: a directory is EISDIR, a FIFO
// ErrPipe, a device or socket ErrSpecial, a link ErrChanged.
func (a *At) OpenFile(flags int, mode uint32) (*File, Info, error) {
	if flags&^openFlags != 0 {
		return nil, Info{}, a.fail("open", unix.EINVAL)
	}
	fd, info, err := a.open(flags, mode)
	a.known = false
	if err != nil {
		return nil, Info{}, a.fail("open", err)
	}
	return a.file(fd), info, nil
}

func (a *At) file(fd int) *File {
	path := a.Path()
	return &File{File: os.NewFile(uintptr(fd), path), path: path, readOnly: a.root.readOnly}
}

func (a *At) open(flags int, mode uint32) (int, Info, error) {
	mode = safeMode(mode, false)
	for range openAttempts {
		info, err := a.peek()
		a.known = false
		create := err == unix.ENOENT && flags&unix.O_CREAT != 0
		if err != nil && !create {
			return -1, Info{}, err
		}
		if err := a.mayOpen(flags, create, &info); err != nil {
			return -1, Info{}, err
		}
		// Whether the file was made here must be known, to give it its mode.
		how := flags &^ (unix.O_CREAT | unix.O_EXCL)
		if create {
			how = flags | unix.O_EXCL
		}
		fd, info, err := a.openRegular(how, mode)
		switch {
		case err == nil && create && info.Mode&0o7777 != mode:
			if err = fchmod(fd, mode); err == nil {
				info, err = statFd(fd)
			}
			if err != nil {
				unix.Close(fd)
				return -1, Info{}, err
			}
			return fd, info, nil
		case create && err == unix.EEXIST, !create && err == unix.ENOENT && flags&unix.O_CREAT != 0:
			continue
		}
		return fd, info, err
	}
	return -1, Info{}, ErrChanged
}

// mayOpen decides before the object is touched: opening a device can set it in motion.
func (a *At) mayOpen(flags int, create bool, info *Info) error {
	writes := create || flags&unix.O_ACCMODE != unix.O_RDONLY || flags&unix.O_TRUNC != 0
	if !create && flags&unix.O_CREAT != 0 && flags&unix.O_EXCL != 0 {
		return unix.EEXIST
	}
	if !create {
		if err := info.openable(); err != nil {
			return err
		}
	}
	if writes && a.root.readOnly {
		return unix.EROFS
	}
	return nil
}

// openRegular opens a name and makes sure that a regular file came of it. O_NONBLOCK
// keeps a FIFO that was put there an instant ago from blocking.
func (a *At) openRegular(flags int, mode uint32) (int, Info, error) {
	fd, err := openat(a.fd, a.name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, mode)
	switch err {
	case nil:
	case unix.ELOOP:
		return -1, Info{}, ErrChanged
	case unix.ENXIO: // a FIFO that nobody reads, or a socket
		return -1, Info{}, ErrSpecial
	default:
		return -1, Info{}, err
	}
	info, err := statFd(fd)
	if err == nil {
		err = info.openable()
	}
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&unix.O_APPEND)
	}
	if err != nil {
		unix.Close(fd)
		return -1, Info{}, err
	}
	return fd, info, nil
}

// control runs a system call on the file's descriptor, which cannot be closed meanwhile.
func (f *File) control(op string, call func(fd int) error) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = call(int(fd)) })
	if err == nil {
		err = failed
	}
	return pathError(op, f.path, err)
}

// change is control for what a read-only export refuses.
func (f *File) change(op string, call func(fd int) error) error {
	if f.readOnly {
		return pathError(op, f.path, unix.EROFS)
	}
	return f.control(op, call)
}

// Path is the path that the file was opened by, with links resolved.
func (f *File) Path() string { return f.path }

// Stat examines the open file.
func (f *File) Stat() (Info, error) {
	var info Info
	err := f.control("fstat", func(fd int) (err error) { info, err = statFd(fd); return })
	return info, err
}

// Chmod sets the open file's permissions; set-user-id and set-group-id are left out.
func (f *File) Chmod(mode uint32) error {
	return f.change("fchmod", func(fd int) error { return fchmod(fd, safeMode(mode, false)) })
}

// Truncate sets the open file's length in bytes; the file must be open for writing.
func (f *File) Truncate(length int64) error {
	return f.change("ftruncate", func(fd int) error {
		return again(func() error { return unix.Ftruncate(fd, length) })
	})
}

// Utimens sets the open file's times; see [At.Utimens].
func (f *File) Utimens(atime, mtime unix.Timespec) error {
	return f.change("futimens", func(fd int) error { return futimens(fd, atime, mtime) })
}

// Statfs describes the file system that holds the open file.
func (f *File) Statfs() (unix.Statfs_t, error) {
	var st unix.Statfs_t
	err := f.control("fstatfs", func(fd int) error {
		return again(func() error { return unix.Fstatfs(fd, &st) })
	})
	return st, err
}
