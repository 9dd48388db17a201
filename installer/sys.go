package installer

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// retry calls f again while a signal interrupts it, as signals do on network and
// FUSE file systems.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// openAt opens name below dirfd; mode counts only for O_CREAT.
func openAt(dirfd int, name string, flags int, mode uint32) (int, error) {
	for {
		fd, err := unix.Openat(dirfd, name, flags|unix.O_CLOEXEC, mode)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// openResolved is openat2 for existing names. It gives ENOSYS where the kernel
// (before 5.6) or a seccomp filter does not let the call through.
func openResolved(dirfd int, name string, flags int, resolve uint64) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Resolve: resolve}
	for {
		fd, err := unix.Openat2(dirfd, name, &how)
		switch err {
		case unix.EINTR, unix.EAGAIN: // EAGAIN: raced with a rename
			continue
		case unix.EPERM:
			err = unix.ENOSYS
		}
		return fd, err
	}
}

// fstatAt is fstatat that does not follow name.
func fstatAt(dirfd int, name string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// futimens sets the modification time of an open file and leaves the access time.
func futimens(fd int, mtime unix.Timespec) error {
	ts := [2]unix.Timespec{{Nsec: unix.UTIME_OMIT}, mtime}
	for {
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0,
			uintptr(unsafe.Pointer(&ts[0])), 0, 0, 0)
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// chmodPath changes the mode of what fd, opened with O_PATH, stands for; fchmod
// does not do that.
func chmodPath(fd int, mode uint32) error {
	return retry(func() error { return unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode) })
}

// currentUmask returns the calling thread's file mode creation mask without
// changing it, or a strict one where /proc does not tell.
func currentUmask() uint32 {
	status, _ := os.ReadFile("/proc/thread-self/status")
	_, rest, _ := bytes.Cut(status, []byte("\nUmask:\t"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseUint(string(line), 8, 32)
	if err != nil {
		return 0o077
	}
	return uint32(n) & 0o777
}

// openRegular opens a regular file for reading; anything else, a FIFO for
// example, is an error and does not block.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// tempPattern is the pattern of temporary names beside final, for os.CreateTemp
// and os.MkdirTemp.
func tempPattern(final string) string {
	base := filepath.Base(final)
	return "." + base[:min(len(base), 200)] + ".*.part"
}
