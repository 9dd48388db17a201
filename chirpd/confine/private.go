package confine

import (
	"encoding/hex"
	"math/rand/v2"

	"golang.org/x/sys/unix"
)

// ReadPrivate reads the private file name, which begins with ".__", in the containing
// directory, through the descriptor that the object's operations use. A file larger than
// max bytes is EFBIG, anything but a regular file is refused. It gives the file's Info
// too: device, inode, change time and size tell whether a copy is still true, which
// [At.StatPrivate] then answers in one call.
func (a *At) ReadPrivate(name string, max int64) ([]byte, Info, error) {
	if err := privateName(name); err != nil {
		return nil, Info{}, a.failPrivate("read", name, err)
	}
	data, info, err := readFile(a.fd, name, max)
	return data, info, a.failPrivate("read", name, err)
}

func readFile(dir int, name string, max int64) ([]byte, Info, error) {
	fd, err := openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, Info{}, err
	}
	defer unix.Close(fd)
	info, err := statFd(fd)
	if err != nil {
		return nil, info, err
	}
	if err := info.openable(); err != nil {
		return nil, info, err
	}
	if info.Size > max {
		return nil, info, unix.EFBIG
	}
	data := make([]byte, 0, info.Size+1)
	for {
		if len(data) == cap(data) {
			data = append(data, 0)[:len(data)]
		}
		var n int
		err := again(func() (err error) { n, err = unix.Read(fd, data[len(data):cap(data)]); return })
		if err != nil {
			return nil, info, err
		}
		if n == 0 {
			return data, info, nil
		}
		if data = data[:len(data)+n]; int64(len(data)) > max {
			return nil, info, unix.EFBIG
		}
	}
}

// StatPrivate examines a private file in the containing directory.
func (a *At) StatPrivate(name string) (Info, error) {
	if err := privateName(name); err != nil {
		return Info{}, a.failPrivate("stat", name, err)
	}
	info, err := statAt(a.fd, name)
	return info, a.failPrivate("stat", name, err)
}

// WritePrivate replaces a private file in the containing directory in one step, on disk
// before it returns: others see the old content or the new.
func (a *At) WritePrivate(name string, data []byte, mode uint32) error {
	if err := a.changePrivate("write", name); err != nil {
		return err
	}
	temp := tempName("new")
	err := createFile(a.fd, temp, data, safeMode(mode, false), true)
	if err == nil {
		err = renameat(a.fd, temp, a.fd, name, 0)
	}
	if err != nil {
		unlinkat(a.fd, temp, 0)
		return a.failPrivate("write", name, err)
	}
	return a.failPrivate("write", name, syncDir(a.fd))
}

// RemovePrivate removes a private file in the containing directory.
func (a *At) RemovePrivate(name string) error {
	if err := a.changePrivate("remove", name); err != nil {
		return err
	}
	return a.failPrivate("remove", name, removePrivate(a.fd, name))
}

func (a *At) changePrivate(op, name string) error {
	err := privateName(name)
	if err == nil && a.root.readOnly {
		err = unix.EROFS
	}
	return a.failPrivate(op, name, err)
}

func (a *At) failPrivate(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return pathError(op, a.dir+"/"+name, err)
}

// createFile makes a new file with a content and exactly the mode given.
func createFile(dir int, name string, data []byte, mode uint32, sync bool) error {
	fd, err := openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := writeAll(fd, data); err != nil {
		return err
	}
	if err := fchmod(fd, mode); err != nil {
		return err
	}
	if sync {
		return fsync(fd)
	}
	return nil
}

// syncDir puts a directory's names on disk.
func syncDir(dir int) error {
	fd, err := openat(dir, ".", listFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	err = fsync(fd)
	if err == unix.EINVAL { // a file system that has nothing to sync
		return nil
	}
	return err
}

// tempName makes a private name that nothing else has.
func tempName(what string) string {
	var b [8]byte
	for i, n := 0, rand.Uint64(); i < len(b); i, n = i+1, n>>8 {
		b[i] = byte(n)
	}
	return PrivatePrefix + what + "." + hex.EncodeToString(b[:])
}
