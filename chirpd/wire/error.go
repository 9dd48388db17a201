package wire

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
)

// Error is a failed operation on a server, for both ends and for people: what
// was tried, on which path, and why it failed. Err is the cause where there is
// one beside the code (a lost connection, an errno of the server's disk).
type Error struct {
	Op   string // the command, as on the wire: "open", "rename"
	Path string // the path as the caller gave it, with the host in front where that helps; may be empty
	Code Code
	Err  error
}

// Error says the operation, the path and the cause.
func (e *Error) Error() string {
	s := e.Op
	if e.Path != "" {
		s += " " + e.Path
	}
	if e.Err == nil || e.Err == error(e.Code) {
		return s + ": " + e.Code.Error()
	}
	return s + ": " + e.Err.Error()
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the error's code, or an errno or fs error that
// means the same.
func (e *Error) Is(target error) bool {
	if c, ok := target.(Code); ok {
		return c == e.Code
	}
	return e.Code.Is(target)
}

// CodeFor is the code by which err is told to a client: that of a wire error or
// an errno inside err, TimedOut and Disconnected for what the network does, and
// Unknown for everything else. A nil err is 0.
func CodeFor(err error) Code {
	var coded *Error
	var code Code
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.Code
	case errors.As(err, &code):
		return code
	case errors.As(err, &errno):
		return CodeOf(errno)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return TimedOut
	case errors.Is(err, net.ErrClosed):
		return Disconnected
	case errors.Is(err, os.ErrNotExist):
		return DoesntExist
	case errors.Is(err, os.ErrExist):
		return AlreadyExists
	case errors.Is(err, os.ErrPermission):
		return NotAuthorized
	}
	return Unknown
}

// ErrnoFor is the errno by which err is told to an application: that of an errno
// or a wire error inside err, EINTR for a cancelled context, ETIMEDOUT for one
// that ran out, and EIO for everything else. A nil err is 0.
func ErrnoFor(err error) syscall.Errno {
	var errno syscall.Errno
	var coded *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	case errors.As(err, &coded):
		return coded.Code.Errno()
	case errors.Is(err, context.Canceled):
		return syscall.EINTR
	}
	return CodeFor(err).Errno()
}
