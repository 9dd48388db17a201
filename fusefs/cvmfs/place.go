package cvmfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// place is a directory that is ours alone. It is held by a descriptor: whatever
// somebody does to the directories above, all names are looked up in this one.
type place struct{ dir *os.File }

// openPlace opens path, and makes it when it is not there. It refuses a directory
// in which somebody else has a say.
func openPlace(path string) (place, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return place{}, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return place{}, err
	}
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return place{}, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(int(dir.Fd()), &st); err == nil {
		switch {
		case int(st.Uid) != os.Geteuid():
			err = fmt.Errorf("%s belongs to user %d, not to you", path, st.Uid)
		case st.Mode&0o022 != 0:
			err = fmt.Errorf("%s can be written by others; if you trust what is in it: chmod 700 %s", path, path)
		}
	}
	if err != nil {
		dir.Close()
		return place{}, err
	}
	return place{dir}, nil
}

// fail makes an error of a system call.
func (p place) fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &os.PathError{Op: op, Path: filepath.Join(p.dir.Name(), name), Err: err}
}

// open opens a file below.
func (p place) open(name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(p.dir.Fd()), name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, p.fail("open", name, err)
		}
		return os.NewFile(uintptr(fd), filepath.Join(p.dir.Name(), name)), nil
	}
}

// exists says whether there is such a name.
func (p place) exists(name string) bool {
	return unix.Faccessat(int(p.dir.Fd()), name, unix.F_OK, 0) == nil
}

// mkdir makes a directory below, unless it is there.
func (p place) mkdir(name string) error {
	err := unix.Mkdirat(int(p.dir.Fd()), name, 0o700)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	return p.fail("mkdir", name, err)
}

// rename gives a file below another name, over one that is there.
func (p place) rename(from, to string) error {
	fd := int(p.dir.Fd())
	return p.fail("rename", from, unix.Renameat(fd, from, fd, to))
}

// remove removes a file below.
func (p place) remove(name string) error {
	return p.fail("remove", name, unix.Unlinkat(int(p.dir.Fd()), name, 0))
}

// is says whether name is still f.
func (p place) is(name string, f *os.File) bool {
	var there, have unix.Stat_t
	return unix.Fstatat(int(p.dir.Fd()), name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		unix.Fstat(int(f.Fd()), &have) == nil && there.Ino == have.Ino && there.Dev == have.Dev
}

// names lists a directory below.
func (p place) names(dir string) ([]string, error) {
	f, err := p.open(dir, os.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// write gives a file below a new content in one step.
func (p place) write(name string, data []byte) error {
	tmp := fmt.Sprintf("%s.%d.%d", name, os.Getpid(), time.Now().UnixNano())
	f, err := p.open(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = p.rename(tmp, name)
	}
	if err != nil {
		_ = p.remove(tmp)
	}
	return err
}

// read returns the content of a file below, of at most limit bytes.
func (p place) read(name string, limit int) ([]byte, error) {
	f, err := p.open(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buf := make([]byte, limit)
	n, err := f.ReadAt(buf, 0)
	if n == limit {
		return nil, p.fail("read", name, unix.EFBIG)
	}
	if err != nil && n == 0 {
		return nil, err
	}
	return buf[:n], nil
}

// tryLock locks f, unless somebody else has.
func tryLock(f *os.File) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
