package fusefs

import (
	"syscall"

	"skeletonkey/chirpd/wire"
)

// errnoFor is the one place where an error becomes what an application is told.
// (go-fuse's fs.ToErrno does not look inside errors, and makes ENOSYS of those that
// it does not know, which the kernel takes for an answer once and for all.)
func errnoFor(err error) syscall.Errno {
	switch errno := wire.ErrnoFor(err); errno {
	case syscall.ENOSYS:
		return syscall.EIO
	default:
		return errno
	}
}

// errStale is the error of a node that has no place in the tree any more. The
// kernel answers it by looking the path up afresh, once.
const errStale = syscall.ESTALE
