package wire

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// toErrno is the real server's map, read off its replies, for the whole table.
var toErrno = map[Code]syscall.Errno{
	-1: syscall.EACCES, -2: syscall.EACCES, -3: syscall.ENOENT, -4: syscall.EEXIST, -5: syscall.EFBIG, -6: syscall.ENOSPC,
	-7: syscall.ENOMEM, -8: syscall.EINVAL, -9: syscall.EMFILE, -10: syscall.EBUSY, -11: syscall.EAGAIN, -12: syscall.EBADF,
	-13: syscall.EISDIR, -14: syscall.ENOTDIR, -15: syscall.ENOTEMPTY, -16: syscall.EXDEV, -18: syscall.ETIMEDOUT,
	-20: syscall.EHOSTUNREACH, -21: syscall.ESRCH, -22: syscall.ESPIPE, -23: syscall.ENOTSUP, -24: syscall.ENAMETOOLONG,
	-127: syscall.EIO, -99: syscall.EIO, 0: syscall.EIO, 7: syscall.EIO,
}

func TestCodesAndErrnos(t *testing.T) {
	for code, errno := range toErrno {
		if got := code.Errno(); got != errno {
			t.Errorf("code %d is %v, want %v", code, got, errno)
		}
	}
	for code, m := range meanings {
		if back := CodeOf(m.errno); back != code && code != NotAuthenticated {
			t.Errorf("code %d is %v, which is code %d", code, m.errno, back)
		}
	}
	for errno, want := range map[syscall.Errno]Code{
		syscall.EACCES: -2, syscall.EPERM: -2, syscall.EROFS: -2, syscall.EDQUOT: -6, syscall.ENFILE: -9, syscall.ENOSYS: -8,
		syscall.ENODATA: -8, syscall.EIO: -127, syscall.ELOOP: -127, syscall.ESTALE: -127, syscall.Errno(9999): -127,
	} {
		if got := CodeOf(errno); got != want {
			t.Errorf("%v is code %d, want %d", errno, got, want)
		}
	}
}

func TestNoErrnoIsSuccess(t *testing.T) {
	for n := syscall.Errno(1); n < 200; n++ {
		if c := CodeOf(n); c >= 0 {
			t.Errorf("errno %d is told as %d", n, c)
		}
		if e := ErrnoFor(n); e == 0 {
			t.Errorf("errno %d is lost", n)
		}
	}
}

func TestErrorAnswersIs(t *testing.T) {
	err := fmt.Errorf("while copying: %w", &Error{Op: "open", Path: "/x", Code: DoesntExist})
	for _, target := range []error{DoesntExist, syscall.ENOENT, fs.ErrNotExist, os.ErrNotExist} {
		if !errors.Is(err, target) {
			t.Errorf("%v is not %v", err, target)
		}
	}
	for _, target := range []error{AlreadyExists, syscall.EEXIST, fs.ErrExist, fs.ErrPermission} {
		if errors.Is(err, target) {
			t.Errorf("%v is %v", err, target)
		}
	}
	if got := (&Error{Op: "open", Path: "/x", Code: DoesntExist}).Error(); got != "open /x: no such file or directory" {
		t.Errorf("message %q", got)
	}
	stale := &Error{Op: "pread", Code: Unknown, Err: syscall.ESTALE}
	if !errors.Is(stale, syscall.ESTALE) || stale.Error() != "pread: "+syscall.ESTALE.Error() {
		t.Errorf("cause is lost: %v", stale)
	}
}

func TestCodeAndErrnoForErrors(t *testing.T) {
	for _, c := range []struct {
		err   error
		code  Code
		errno syscall.Errno
	}{
		{nil, 0, 0},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, NotDir, syscall.ENOTDIR},
		{fmt.Errorf("x: %w", NotEmpty), NotEmpty, syscall.ENOTEMPTY},
		{&Error{Code: Unknown, Err: syscall.ESTALE}, Unknown, syscall.ESTALE},
		{context.DeadlineExceeded, TimedOut, syscall.ETIMEDOUT},
		{context.Canceled, Unknown, syscall.EINTR},
		{fs.ErrNotExist, DoesntExist, syscall.ENOENT},
		{errors.New("anything"), Unknown, syscall.EIO},
	} {
		if got := CodeFor(c.err); got != c.code {
			t.Errorf("CodeFor(%v) = %d, want %d", c.err, got, c.code)
		}
		if got := ErrnoFor(c.err); got != c.errno {
			t.Errorf("ErrnoFor(%v) = %v, want %v", c.err, got, c.errno)
		}
	}
}
