package installer

import (
	"fmt"
	"os"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// laterDir is a directory whose mode and time are set when everything is there:
// before, a mode could lock us out and each new file would change the time.
type laterDir struct {
	path  string
	mode  uint32
	mtime unix.Timespec // noTime to leave it
}

var noTime = unix.Timespec{Nsec: unix.UTIME_OMIT}

// laterDirs remembers directories within a bound.
type laterDirs struct {
	list  []laterDir
	bytes int
}

// maxLaterBytes bounds the memory for directories: about a million with names of
// 50 bytes.
const maxLaterBytes = 96 << 20

func (l *laterDirs) add(d laterDir) error {
	l.bytes += len(d.path) + 64
	if l.bytes > maxLaterBytes {
		return fmt.Errorf("%w: more than %d directories", ErrLimit, len(l.list))
	}
	l.list = append(l.list, d)
	return nil
}

// makeDir makes, or takes over, a directory that a member names. Its mode and
// time are set by finish.
func (t *tree) makeDir(path string, mode uint32, mtime unix.Timespec) error {
	mode = mode & 0o777 &^ t.umask
	err := t.put(path, func(parent int, base string) error {
		err := unix.Mkdirat(parent, base, mode|0o700)
		if err == unix.EEXIST && t.takeOver(parent, base, path) == nil {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return t.later.add(laterDir{path, mode, mtime})
}

// takeOver makes sure that we can work in the old directory base.
func (t *tree) takeOver(parent int, base, path string) error {
	fd, err := openAt(parent, base, pathDir, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return t.openUp(fd, path)
}

// finish sets the modes and times of directories, the deepest first, because a
// parent's mode may bar the way to its children. It goes on after an error, and
// returns the first.
func (t *tree) finish() (first error) {
	list := t.later.list
	sort.SliceStable(list, func(i, j int) bool { return list[i].path > list[j].path })
	for i := 0; i < len(list); {
		last := list[i] // of several for one path, the last named counts
		for i++; i < len(list) && list[i].path == last.path; i++ {
			if list[i].mtime == noTime {
				list[i].mtime = last.mtime
			}
			last = list[i]
		}
		if err := t.finishDir(last); err != nil && first == nil {
			first = &UnpackError{Member: last.path, Err: err}
		}
	}
	return first
}

func (t *tree) finishDir(d laterDir) error {
	parent, base, err := t.parentOf(d.path, false)
	if err != nil {
		return err
	}
	fd, err := openAt(parent, base, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return dirError(d.path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&0o777 != d.mode {
		// A set-group-ID bit that the destination passes on is not the archive's.
		mode := d.mode | st.Mode&unix.S_ISGID
		if err := retry(func() error { return unix.Fchmod(fd, mode) }); err != nil {
			return &os.PathError{Op: "chmod", Path: d.path, Err: err}
		}
	}
	if d.mtime == noTime {
		return nil
	}
	if err := futimens(fd, d.mtime); err != nil {
		return &os.PathError{Op: "set time of", Path: d.path, Err: err}
	}
	return nil
}

// cleanName returns a member's name as a path below the destination without its
// first strip names; ok is false where nothing is left. Names that could lead
// outside are errors.
func cleanName(name string, strip int, lim Limits) (path string, ok bool, err error) {
	if name == "" {
		return "", false, fmt.Errorf("%w: empty name", ErrUnsafe)
	}
	if name[0] == '/' {
		return "", false, fmt.Errorf("%w: the name is absolute", ErrUnsafe)
	}
	if len(name) > lim.PathBytes {
		return "", false, fmt.Errorf("%w: the name is longer than %d bytes", ErrLimit, lim.PathBytes)
	}
	parts := strings.Split(name, "/")
	kept := parts[:0]
	for _, p := range parts {
		switch p {
		case "", ".":
		case "..":
			return "", false, fmt.Errorf("%w: the name contains \"..\"", ErrUnsafe)
		default:
			kept = append(kept, p)
		}
	}
	if len(kept) > lim.Depth {
		return "", false, fmt.Errorf("%w: the name is deeper than %d", ErrLimit, lim.Depth)
	}
	if len(kept) <= strip {
		return "", false, nil
	}
	return strings.Join(kept[strip:], "/"), true, nil
}
