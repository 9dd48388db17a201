package installer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// RemoveTree removes path and everything below it, directories without write
// permission included. It follows no symbolic link and enters no mount point:
// what is mounted below path stays, and is an error. A path that does not exist
// is no error.
func RemoveTree(path string) error {
	path = filepath.Clean(path)
	parent, err := openAt(unix.AT_FDCWD, filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == unix.ENOENT {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	defer unix.Close(parent)
	if err := removeAt(parent, filepath.Base(path)); err != nil {
		return fmt.Errorf("remove %s: %w", path, err)
	}
	return nil
}

// removeAt removes name in the directory parent, and what is below it.
func removeAt(parent int, name string) error {
	err := retry(func() error { return unix.Unlinkat(parent, name, 0) })
	switch err {
	case nil, unix.ENOENT:
		return nil
	case unix.EISDIR:
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
	for range 3 { // some file systems skip names when others are removed meanwhile
		if err = emptyDir(parent, name); err != nil {
			break
		}
		err = retry(func() error { return unix.Unlinkat(parent, name, unix.AT_REMOVEDIR) })
		if err == nil || err == unix.ENOENT {
			return nil
		}
		if err != unix.ENOTEMPTY && err != unix.EEXIST {
			break
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// emptyDir removes everything in the directory name of parent. It goes on after
// an error, and returns the first.
func emptyDir(parent int, name string) error {
	f, err := openForRemoval(parent, name)
	if err != nil {
		return err
	}
	defer f.Close()
	var first error
	for {
		names, err := f.Readdirnames(1024)
		for _, n := range names {
			if err := removeAt(int(f.Fd()), n); err != nil && first == nil {
				first = err
			}
		}
		if err == io.EOF || len(names) == 0 {
			return first
		}
		if err != nil {
			return err
		}
	}
}

// openForRemoval opens a directory on the same mount as parent, and makes it
// readable and writable to its owner.
func openForRemoval(parent int, name string) (*os.File, error) {
	fd, err := openSameMount(parent, name, unix.O_PATH)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&0o700 != 0o700 && int(st.Uid) == os.Geteuid() {
		if err := chmodPath(fd, st.Mode&0o7777|0o700); err != nil {
			return nil, err
		}
	}
	dir, err := openAt(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(dir), name), nil
}

// openSameMount opens the directory name of parent unless something is mounted
// there.
func openSameMount(parent int, name string, flags int) (int, error) {
	flags |= unix.O_DIRECTORY | unix.O_NOFOLLOW
	fd, err := openResolved(parent, name, flags, unix.RESOLVE_NO_XDEV|unix.RESOLVE_NO_SYMLINKS)
	if err == unix.EXDEV {
		return -1, errMounted
	}
	if err != unix.ENOSYS {
		return fd, err
	}
	if fd, err = openAt(parent, name, flags, 0); err != nil {
		return -1, err
	}
	var in, at unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &in), unix.Fstat(parent, &at))
	if err == nil && in.Dev != at.Dev {
		err = errMounted
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

var errMounted = errors.New("something is mounted here: unmount it first")
