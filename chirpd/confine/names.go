package confine

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Unlink removes the object, which must not be a directory (EISDIR).
func (a *At) Unlink() error {
	if err := a.change("unlink"); err != nil {
		return err
	}
	return a.fail("unlink", unlinkat(a.fd, a.name, 0))
}

// Readlink gives a link's target as it was written, or EINVAL.
func (a *At) Readlink() (string, error) {
	target, err := readlinkat(a.fd, a.name)
	return target, a.fail("readlink", err)
}

// Symlink makes the object a symbolic link to target, which is kept as it is and
// resolved by whoever walks it: here, from the export's root.
func (a *At) Symlink(target string) error {
	if err := a.change("symlink"); err != nil {
		return err
	}
	return a.fail("symlink", again(func() error { return unix.Symlinkat(target, a.fd, a.name) }))
}

// Link makes the object another name for the file old. A link is not followed: a link
// to it gives a second link, and what that points to is checked when it is walked.
func (a *At) Link(old *At) error {
	if err := a.change("link"); err != nil {
		return err
	}
	if old.root != a.root {
		return linkError("link", old, a, unix.EXDEV)
	}
	return linkError("link", old, a, again(func() error {
		return unix.Linkat(old.fd, old.name, a.fd, a.name, 0)
	}))
}

// Rename gives the object the place of to, replacing a file or an empty directory that
// is there, in one step. A directory that holds nothing but private files counts as
// empty.
func (a *At) Rename(to *At) error {
	if err := a.change("rename"); err != nil {
		return err
	}
	to.known = false
	return linkError("rename", a, to, a.rename(to))
}

func (a *At) rename(to *At) error {
	if a.name == "." || to.name == "." {
		return unix.EBUSY
	}
	if a.root != to.root {
		return unix.EXDEV
	}
	err := renameat(a.fd, a.name, to.fd, to.name, 0)
	if !isErrno(err, unix.ENOTEMPTY, unix.EEXIST) {
		return err
	}
	if seemsEmpty(to.fd, to.name) != nil {
		return err
	}
	// Swap the two, so that at every instant one whole directory is there, and
	// remove the one that had only private files.
	if swap := renameat(a.fd, a.name, to.fd, to.name, unix.RENAME_EXCHANGE); swap != nil {
		return err
	}
	if rmdir(a.fd, a.name) != nil {
		if back := renameat(a.fd, a.name, to.fd, to.name, unix.RENAME_EXCHANGE); back != nil {
			return back
		}
		return err
	}
	return nil
}

// privateName checks what the methods for private files are given.
func privateName(name string) error {
	if !IsPrivate(name) || strings.ContainsAny(name, "/\x00") {
		return unix.EINVAL
	}
	return nil
}
