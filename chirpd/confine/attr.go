package confine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Chmod sets the object's permissions. Set-user-id is left out, set-group-id too unless
// the object is a directory. A link has no permissions of its own: EOPNOTSUPP.
func (a *At) Chmod(mode uint32) error {
	if err := a.change("chmod"); err != nil {
		return err
	}
	return a.fail("chmod", a.chmod(mode))
}

func (a *At) chmod(mode uint32) error {
	dir := false
	if mode&unix.S_ISGID != 0 {
		info, err := statAt(a.fd, a.name)
		if err != nil {
			return err
		}
		dir = info.IsDir()
	}
	mode = safeMode(mode, dir)
	err := again(func() error { return unix.Fchmodat(a.fd, a.name, mode, unix.AT_SYMLINK_NOFOLLOW) })
	if !isErrno(err, unix.ENOSYS, unix.EOPNOTSUPP) {
		return err
	}
	return a.chmodProc(mode)
}

// chmodProc is chmod for kernels that have no fchmodat2.
func (a *At) chmodProc(mode uint32) error {
	fd, info, err := a.hold()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if info.IsLink() {
		return unix.EOPNOTSUPP
	}
	if !a.root.proc {
		return ErrNoProc
	}
	return again(func() error { return unix.Chmod(procPath(fd), mode) })
}

// hold opens the object itself without any permission on it, a link included.
func (a *At) hold() (int, Info, error) {
	fd, err := openat(a.fd, a.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, Info{}, err
	}
	info, err := statFd(fd)
	if err != nil {
		unix.Close(fd)
		return -1, Info{}, err
	}
	return fd, info, nil
}

// Utimens sets the times of the object, of a link itself. A Nsec of unix.UTIME_OMIT
// leaves a time alone and unix.UTIME_NOW takes the server's clock.
func (a *At) Utimens(atime, mtime unix.Timespec) error {
	if err := a.change("utimens"); err != nil {
		return err
	}
	times := []unix.Timespec{atime, mtime}
	return a.fail("utimens", again(func() error {
		return unix.UtimesNanoAt(a.fd, a.name, times, unix.AT_SYMLINK_NOFOLLOW)
	}))
}

// futimens is utimensat for a descriptor, which the library does not offer: the path
// must be a null pointer.
func futimens(fd int, atime, mtime unix.Timespec) error {
	times := [2]unix.Timespec{atime, mtime}
	return again(func() error {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0,
			uintptr(unsafe.Pointer(&times)), 0, 0, 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

// Truncate sets the length in bytes of the object, a regular file.
func (a *At) Truncate(length int64) error {
	if length < 0 {
		return a.fail("truncate", unix.EINVAL)
	}
	fd, _, err := a.open(unix.O_WRONLY, 0)
	if err != nil {
		return a.fail("truncate", err)
	}
	defer unix.Close(fd)
	return a.fail("truncate", again(func() error { return unix.Ftruncate(fd, length) }))
}

// Access says, by its error, whether the server itself may use the object as mode asks:
// 4 to read, 2 to write, 1 to execute or enter, 0 for being there.
func (a *At) Access(mode uint32) error {
	if mode&unix.W_OK != 0 && a.root.readOnly {
		return a.fail("access", unix.EROFS)
	}
	return a.fail("access", again(func() error {
		return unix.Faccessat(a.fd, a.name, mode, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EACCESS)
	}))
}

// Statfs describes the file system that holds the object.
func (a *At) Statfs() (unix.Statfs_t, error) {
	var st unix.Statfs_t
	fd, _, err := a.hold()
	if err != nil {
		return st, a.fail("statfs", err)
	}
	defer unix.Close(fd)
	err = again(func() error { return unix.Fstatfs(fd, &st) })
	return st, a.fail("statfs", err)
}
