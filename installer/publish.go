package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Publish gives tmp, a file or a directory on the same file system, the name
// final in one step, and waits until both are on the disk. An existing final is
// an error (fs.ErrExist) and untouched; tmp then stays, as on any error.
func Publish(tmp, final string) error {
	return publish(tmp, final, false, true)
}

// Replace is Publish where final may exist. A file takes its place in one step; a
// directory is exchanged for it in one step, and the old tree is then removed.
// A file system that cannot exchange directories gives an error.
func Replace(tmp, final string) error {
	return publish(tmp, final, true, true)
}

func publish(tmp, final string, replace, sync bool) error {
	st, err := os.Lstat(tmp)
	if err != nil {
		return fmt.Errorf("publish %s: %w", final, err)
	}
	if sync {
		if err := syncContent(tmp, st.IsDir()); err != nil {
			return fmt.Errorf("publish %s: %w", final, err)
		}
	}
	switch {
	case !replace:
		err = renameNew(tmp, final, st.IsDir())
	case st.IsDir():
		err = exchange(tmp, final)
	default:
		err = os.Rename(tmp, final)
	}
	if err != nil {
		return fmt.Errorf("publish %s: %w", final, err)
	}
	if sync {
		return syncDir(filepath.Dir(filepath.Clean(final)))
	}
	return nil
}

// renameNew renames tmp to a name that does not exist.
func renameNew(tmp, final string, isDir bool) error {
	err := retry(func() error {
		return unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, final, unix.RENAME_NOREPLACE)
	})
	if err == unix.EEXIST {
		return existsError("rename", final)
	}
	if err != unix.EINVAL && err != unix.ENOSYS {
		return err
	}
	// Some file systems (NFS) have no such flag. There, link is as exclusive for
	// a file, and a rename of a directory replaces at most an empty directory.
	if !isDir {
		if err := os.Link(tmp, final); err != nil {
			return err
		}
		return os.Remove(tmp)
	}
	if _, err := os.Lstat(final); err == nil {
		return existsError("rename", final)
	}
	return os.Rename(tmp, final)
}

// exchange puts the directory tmp in the place of final, and removes what was
// there.
func exchange(tmp, final string) error {
	st, err := os.Lstat(final)
	if errors.Is(err, fs.ErrNotExist) {
		return renameNew(tmp, final, true)
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return &fs.PathError{Op: "replace", Path: final, Err: unix.ENOTDIR}
	}
	err = retry(func() error {
		return unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, final, unix.RENAME_EXCHANGE)
	})
	if err == unix.EINVAL || err == unix.ENOSYS {
		return errors.New("this file system cannot exchange two directories: remove the old one first")
	}
	if err != nil {
		return err
	}
	return RemoveTree(tmp)
}

func existsError(op, path string) error {
	return &fs.PathError{Op: op, Path: path, Err: unix.EEXIST}
}

// syncContent waits until path's content is on the disk: for a tree by one call
// for the whole file system, which is far cheaper than one for each file.
func syncContent(path string, isDir bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if isDir {
		return retry(func() error { return unix.Syncfs(int(f.Fd())) })
	}
	return f.Sync()
}

// syncDir makes the names in a directory durable. File systems that cannot do
// that say EINVAL.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}
