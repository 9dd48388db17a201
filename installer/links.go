package installer

import (
	"archive/tar"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// A symbolic link is harmless if it leads nowhere but to places inside, whatever
// other links the tree holds now or later. "../" at the front of a target goes up
// real directories, since a link's parents are no links and stay directories for
// good: counting them is enough. Names may be links themselves, harmless ones. But
// ".." after a name goes up from wherever that name leads; such a link is "odd",
// and at the end each such name must have turned out to be a directory.

// oddLink is a link whose target has ".." after a name.
type oddLink struct{ path, target string }

// maxOddLinks bounds the memory for them; their strings are below 8 KiB each.
const maxOddLinks = 4096

func (x *extraction) symlink(path string, hdr *tar.Header) error {
	target := hdr.Linkname
	odd, err := checkTarget(path, target)
	if err != nil {
		return err
	}
	if odd {
		if len(x.odd) == maxOddLinks {
			return fmt.Errorf("%w: over %d links with \"..\" after a name", ErrLimit, maxOddLinks)
		}
		x.odd = append(x.odd, oddLink{path, target})
	}
	ts := []unix.Timespec{noTime, mtimeOf(hdr)}
	err = x.tree.put(path, func(parent int, base string) error {
		if err := unix.Symlinkat(target, parent, base); err != nil {
			return err
		}
		return retry(func() error {
			return unix.UtimesNanoAt(parent, base, ts, unix.AT_SYMLINK_NOFOLLOW)
		})
	})
	if err != nil {
		return linkError("symlink", path, target, err)
	}
	x.sum.Symlinks++
	return nil
}

// checkTarget refuses a symbolic link at path that leads outside, by its text.
func checkTarget(path, target string) (odd bool, err error) {
	switch {
	case target == "":
		return false, fmt.Errorf("%w: a symbolic link without a target", ErrUnsafe)
	case target[0] == '/':
		return false, fmt.Errorf("%w: a symbolic link to the absolute path %q", ErrUnsafe, target)
	}
	depth, named := strings.Count(path, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			odd = odd || named
			if depth--; depth < 0 {
				return false, fmt.Errorf("%w: a symbolic link to %q, which is outside", ErrUnsafe, target)
			}
		default:
			depth++
			named = true
		}
	}
	return odd, nil
}

// settleLinks checks the odd links, now that all else is there, and removes those
// that could lead outside; all of them if the extraction failed.
func (x *extraction) settleLinks(failed bool) (first error) {
	for _, l := range x.odd {
		if !x.isThere(l) || !failed && x.throughDirs(l) {
			continue
		}
		err := fmt.Errorf("%w: a symbolic link to %q, where \"..\" does not follow a directory", ErrUnsafe, l.target)
		parent, base, perr := x.tree.parentOf(l.path, false)
		if perr == nil {
			perr = remove(parent, base)
		}
		if perr != nil {
			err = perr
		}
		if first == nil {
			first = &UnpackError{Member: l.path, Err: err}
		}
	}
	return first
}

// isThere reports whether the link has not been replaced meanwhile.
func (x *extraction) isThere(l oddLink) bool {
	parent, base, err := x.tree.parentOf(l.path, false)
	if err != nil {
		return false
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(parent, base, buf)
	return err == nil && string(buf[:n]) == l.target
}

// throughDirs reports whether each ".." of the target goes up from a directory.
func (x *extraction) throughDirs(l oddLink) bool {
	var at []string
	if dir, _ := split(l.path); dir != "" {
		at = strings.Split(dir, "/")
	}
	for part := range strings.SplitSeq(l.target, "/") {
		switch part {
		case "", ".":
		case "..":
			if _, err := x.tree.dir(strings.Join(at, "/"), false); err != nil {
				return false
			}
			at = at[:len(at)-1]
		default:
			at = append(at, part)
		}
	}
	return true
}

// hardlink links path to a regular file that is there already. Neither end is
// followed if it is a symbolic link.
func (x *extraction) hardlink(path string, hdr *tar.Header) error {
	target, ok, err := cleanName(hdr.Linkname, x.opts.StripComponents, x.lim)
	if err != nil {
		return fmt.Errorf("hard link to %q: %w", hdr.Linkname, err)
	}
	if !ok {
		return fmt.Errorf("%w: a hard link to %q, which is stripped away", ErrUnsafe, hdr.Linkname)
	}
	if target == path {
		return fmt.Errorf("%w: a hard link to itself", ErrUnsafe)
	}
	err = x.tree.put(path, func(parent int, base string) error {
		from, name, err := x.tree.parentOf(target, false)
		if err != nil {
			return err
		}
		if err := unix.Linkat(from, name, parent, base, 0); err != nil {
			return err
		}
		st, err := fstatAt(parent, base)
		if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
			err = errors.Join(remove(parent, base),
				fmt.Errorf("%w: a hard link to %q, which is not a regular file", ErrUnsafe, hdr.Linkname))
		}
		return err
	})
	if err != nil {
		return linkError("link", path, hdr.Linkname, err)
	}
	x.sum.Hardlinks++
	return nil
}

// linkError names both ends where a system call failed.
func linkError(op, path, target string, err error) error {
	if _, ok := err.(unix.Errno); ok {
		return &os.LinkError{Op: op, Old: target, New: path, Err: err}
	}
	return err
}
