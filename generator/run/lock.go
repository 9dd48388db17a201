package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"skeletonkey/installer"
)

// errSwept says that somebody took a directory for a dead job's before it was
// locked.
var errSwept = errors.New("the new scratch directory was removed")

// errLive says that a directory belongs to a job that lives, errNoLocks that nobody
// can tell.
var (
	errLive    = errors.New("its job is alive")
	errNoLocks = errors.New("the file system has no locks")
)

// lockName is the name of the lock in a scratch directory. It has the name of the
// machine in it: on a file system of many machines where locks hold on one of them
// only, another's directory is never taken for a dead job's.
func lockName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return "lock-" + filepath.Base(host)
}

// makeLocked makes the directory dir and locks it.
func makeLocked(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	err := os.Chmod(dir, 0o700) // the umask may be anything
	var lock *os.File
	if err == nil {
		const flags = os.O_RDWR | os.O_CREATE | os.O_EXCL | unix.O_NOFOLLOW
		lock, err = os.OpenFile(filepath.Join(dir, lockName()), flags, 0o600)
	}
	if errors.Is(err, unix.ENOENT) {
		return nil, errSwept
	}
	if err != nil {
		return nil, err
	}
	err = tryLock(lock)
	if errors.Is(err, errNoLocks) { // then nobody sweeps here
		return lock, nil
	}
	if errors.Is(err, errLive) || err == nil && !isAt(lock, filepath.Join(dir, lockName())) {
		err = errSwept
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// isAt says whether an open file is the one of that name.
func isAt(f *os.File, name string) bool {
	st, err1 := f.Stat()
	at, err2 := os.Lstat(name)
	return err1 == nil && err2 == nil && os.SameFile(st, at)
}

// tryLock locks a file; errLive when another process has it locked.
func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return errLive
		case unix.ENOLCK, unix.ENOSYS, unix.EOPNOTSUPP:
			return errNoLocks
		default:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		}
	}
}

// removeScratch removes a scratch directory, the lock last, so that what an
// interrupted removal leaves can be swept. lock is held, or nil; it is closed when its
// name is gone, as on NFS an open file cannot quite be removed. A directory that is
// gone is no error.
func removeScratch(dir string, lock *os.File) error {
	defer lock.Close() // of nil, or a second time, does no harm
	names, err := readNames(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, name := range names {
		if name != lockName() {
			errs = append(errs, installer.RemoveTree(filepath.Join(dir, name)))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(dir, lockName())); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lock.Close()
	err = installer.RemoveTree(dir)
	if errors.Is(err, fs.ErrNotExist) { // somebody who sweeps was faster
		return nil
	}
	return err
}

// readNames lists a directory that is not a symbolic link.
func readNames(dir string) ([]string, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}
