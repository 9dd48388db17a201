package wire

import (
	"strconv"
	"sync"
	"syscall"
)

// Code is the number of a failed reply, always negative on the wire. It is an
// error in itself, so that errors.Is(err, wire.DoesntExist) reads well, and it
// answers errors.Is for the errno and the fs error that mean the same.
type Code int

// The codes of the protocol.
const (
	NotAuthenticated Code = -1
	NotAuthorized    Code = -2
	DoesntExist      Code = -3
	AlreadyExists    Code = -4
	TooBig           Code = -5
	NoSpace          Code = -6
	NoMemory         Code = -7
	InvalidRequest   Code = -8
	TooManyOpen      Code = -9
	Busy             Code = -10
	TryAgain         Code = -11
	BadFD            Code = -12
	IsDir            Code = -13
	NotDir           Code = -14
	NotEmpty         Code = -15
	CrossDeviceLink  Code = -16
	Offline          Code = -17
	TimedOut         Code = -18
	Disconnected     Code = -19
	GrpUnreachable   Code = -20
	NoSuchJob        Code = -21
	IsAPipe          Code = -22
	NotSupported     Code = -23
	NameTooLong      Code = -24
	Unknown          Code = -127
)

// meaning ties a code to its text and to the errno that a caller sees. The
// errno decides what an application on the mount is told.
type meaning struct {
	text  string
	errno syscall.Errno
}

var meanings = map[Code]meaning{
	NotAuthenticated: {"not authenticated", syscall.EACCES},
	NotAuthorized:    {"not authorized", syscall.EACCES},
	DoesntExist:      {"no such file or directory", syscall.ENOENT},
	AlreadyExists:    {"file exists", syscall.EEXIST},
	TooBig:           {"too big", syscall.EFBIG},
	NoSpace:          {"no space left on the server", syscall.ENOSPC},
	NoMemory:         {"server is out of memory", syscall.ENOMEM},
	InvalidRequest:   {"invalid request", syscall.EINVAL},
	TooManyOpen:      {"too many open files", syscall.EMFILE},
	Busy:             {"busy", syscall.EBUSY},
	TryAgain:         {"try again", syscall.EAGAIN},
	BadFD:            {"bad file descriptor", syscall.EBADF},
	IsDir:            {"is a directory", syscall.EISDIR},
	NotDir:           {"not a directory", syscall.ENOTDIR},
	NotEmpty:         {"directory not empty", syscall.ENOTEMPTY},
	CrossDeviceLink:  {"crosses devices", syscall.EXDEV},
	Offline:          {"server is offline", syscall.EHOSTDOWN},
	TimedOut:         {"timed out", syscall.ETIMEDOUT},
	Disconnected:     {"disconnected", syscall.ENOTCONN},
	GrpUnreachable:   {"group server unreachable", syscall.EHOSTUNREACH},
	NoSuchJob:        {"no such job", syscall.ESRCH},
	IsAPipe:          {"is a pipe", syscall.ESPIPE},
	NotSupported:     {"not supported", syscall.ENOTSUP},
	NameTooLong:      {"name too long", syscall.ENAMETOOLONG},
	Unknown:          {"unknown error on the server", syscall.EIO},
}

// fromErrno lists the errnos whose code is not simply the inverse of meanings,
// as the real server maps them.
var fromErrno = map[syscall.Errno]Code{
	syscall.EPERM:     NotAuthorized,
	syscall.EROFS:     NotAuthorized,
	syscall.EDQUOT:    NoSpace,
	syscall.ENFILE:    TooManyOpen,
	syscall.ENOSYS:    InvalidRequest,
	syscall.ENODATA:   InvalidRequest,
	syscall.EOVERFLOW: TooBig,
	syscall.ETXTBSY:   Busy,
}

// Errno is the system error that means what c means. A code that nobody knows,
// zero and positive numbers included, is EIO: never success, never ENOSYS.
func (c Code) Errno() syscall.Errno {
	if m, ok := meanings[c]; ok {
		return m.errno
	}
	return syscall.EIO
}

// Error is the code's meaning in words.
func (c Code) Error() string {
	if m, ok := meanings[c]; ok {
		return m.text
	}
	return "error " + strconv.Itoa(int(c)) + " of the server"
}

// Is reports whether target is an errno or an fs error of the same meaning.
func (c Code) Is(target error) bool {
	errno := c.Errno()
	return errno == target || errno.Is(target)
}

// CodeOf is the code by which an errno is told to a client. An errno without a
// code of its own is Unknown, never success.
func CodeOf(errno syscall.Errno) Code {
	if c, ok := fromErrno[errno]; ok {
		return c
	}
	if c, ok := inverse()[errno]; ok {
		return c
	}
	return Unknown
}

// inverse turns meanings round. Where two codes share an errno (EACCES), the
// one of greater magnitude is the more telling and wins.
var inverse = sync.OnceValue(func() map[syscall.Errno]Code {
	t := make(map[syscall.Errno]Code, len(meanings))
	for c, m := range meanings {
		if old, ok := t[m.errno]; !ok || c < old {
			t[m.errno] = c
		}
	}
	return t
})
