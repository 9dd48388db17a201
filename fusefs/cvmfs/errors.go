package cvmfs

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// The kinds of failure, for errors.Is.
var (
	// ErrUntrusted: a signature, a name or a fingerprint is not what it must be.
	ErrUntrusted = errors.New("not to be trusted")
	// ErrExpired: the white-list is out of date. It is an ErrUntrusted too.
	ErrExpired = fmt.Errorf("%w: expired", ErrUntrusted)
	// ErrCorrupt: an object is not what its hash says, or cannot be made sense of.
	ErrCorrupt = errors.New("corrupt")
	// ErrMissing: no server has the object.
	ErrMissing = errors.New("no server has it")
	// ErrUnreachable: no server answered.
	ErrUnreachable = errors.New("no server can be reached")
	// ErrUnsupported: the repository uses what this client does not know.
	ErrUnsupported = errors.New("not supported")
)

// Error is a failure of a repository.
type Error struct {
	Repo string // its name
	Op   string // what was tried
	What string // with what: a path in the repository, an object, a file
	Err  error
}

// Error names the repository, the operation and the cause.
func (e *Error) Error() string {
	what := e.Op
	if e.What != "" {
		what += " " + e.What
	}
	return fmt.Sprintf("cvmfs %s: %s: %v", e.Repo, what, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// badData marks what a server or a proxy sent wrong: another one may do better. It
// says so only to the function that asked for the data, and so counts only as it is,
// not when it is wrapped by another error.
type badData struct{ err error }

func (b *badData) Error() string { return b.err.Error() }
func (b *badData) Unwrap() error { return b.err }

// bad makes a *badData of kind, which is one of the errors above.
func bad(kind error, format string, args ...any) error {
	return &badData{fmt.Errorf("%w: %s", kind, fmt.Sprintf(format, args...))}
}

func isBad(err error) bool {
	_, ok := err.(*badData)
	return ok
}

// errnoFor is what a failed system call returns.
func errnoFor(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return syscall.EINTR
	case errors.Is(err, errNoEntry):
		return syscall.ENOENT
	case errors.As(err, &errno) && (errno == syscall.ENOSPC || errno == syscall.EDQUOT || errno == syscall.EMFILE || errno == syscall.ENFILE):
		return errno
	}
	return syscall.EIO
}
