package confine

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The flags with which directories are held: no permission to read is needed, no
// link is followed, nothing but a directory is opened.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// listFlags open a directory for reading.
const listFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// beneath asks the kernel for a whole path of real directories at once. It is
// never written to.
var beneath = unix.OpenHow{
	Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
	Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
}

// again runs a system call until a signal does not interrupt it: file systems in
// user space and on the network pass EINTR on.
func again(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

func openBeneath(dir int, path string) (int, error) {
	for {
		fd, err := unix.Openat2(dir, path, &beneath)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func openat(dir int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func readlinkat(dir int, name string) (string, error) {
	for size := 256; ; size *= 2 {
		buf := make([]byte, size)
		var n int
		err := again(func() (err error) { n, err = unix.Readlinkat(dir, name, buf); return })
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}

// statAt examines a name without following it.
func statAt(dir int, name string) (Info, error) {
	var stx unix.Statx_t
	err := again(func() error {
		return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, statxMask, &stx)
	})
	if err != nil {
		return Info{}, err
	}
	return infoOf(&stx), nil
}

// statRaw is statAt for a name that ends in NUL where it stands, without copying it.
func statRaw(dir int, name *byte, info *Info) error {
	var stx unix.Statx_t
	err := again(func() error {
		_, _, errno := unix.Syscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(name)),
			unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, statxMask, uintptr(unsafe.Pointer(&stx)), 0)
		if errno != 0 {
			return errno
		}
		return nil
	})
	if err == nil {
		*info = infoOf(&stx)
	}
	return err
}

// statFd examines what a descriptor holds, O_PATH or not.
func statFd(fd int) (Info, error) {
	var stx unix.Statx_t
	err := again(func() error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH, statxMask, &stx)
	})
	if err != nil {
		return Info{}, err
	}
	return infoOf(&stx), nil
}

func unlinkat(dir int, name string, flags int) error {
	return again(func() error { return unix.Unlinkat(dir, name, flags) })
}

func renameat(fromDir int, from string, toDir int, to string, flags uint) error {
	return again(func() error { return unix.Renameat2(fromDir, from, toDir, to, flags) })
}

func fchmod(fd int, mode uint32) error {
	return again(func() error { return unix.Fchmod(fd, mode) })
}

func fsync(fd int) error {
	return again(func() error { return unix.Fsync(fd) })
}

// writeAll writes data at a descriptor's offset, all of it.
func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		default:
			data = data[n:]
		}
	}
	return nil
}

// isErrno says whether err is one of the errnos, bare as system calls give them.
func isErrno(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if err == e {
			return true
		}
	}
	return false
}
