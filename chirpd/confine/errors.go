package confine

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Errors of this package. Each has an errno inside, named here, for callers that
// map errors to codes.
var (
	// ErrChanged says that an object was replaced between the walk and its use:
	// a name that was to be followed is a symbolic link now, or an ancestor moved.
	// Walk again; [Root.Do] does. EAGAIN.
	ErrChanged error = &kindError{"changed while in use; walk again", unix.EAGAIN}
	// ErrPrivate refuses a name that begins with ".__". EACCES.
	ErrPrivate error = &kindError{"names beginning with .__ are the server's own", unix.EACCES}
	// ErrSpecial refuses to open a device or a socket. EOPNOTSUPP.
	ErrSpecial error = &kindError{"devices and sockets are not opened", unix.EOPNOTSUPP}
	// ErrPipe refuses to open a FIFO. ESPIPE.
	ErrPipe error = &kindError{"a FIFO is not opened", unix.ESPIPE}
	// ErrNoProc says that an operation needs /proc. EOPNOTSUPP.
	ErrNoProc error = &kindError{"needs /proc to be mounted", unix.EOPNOTSUPP}
)

// kindError is an error with a meaning of its own and an errno inside.
type kindError struct {
	text  string
	errno syscall.Errno
}

func (e *kindError) Error() string { return e.text }

func (e *kindError) Unwrap() error { return e.errno }

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

func linkError(op string, from, to *At, err error) error {
	if err == nil {
		return nil
	}
	return &os.LinkError{Op: op, Old: from.Path(), New: to.Path(), Err: err}
}
