package confine

import (
	"bytes"
	"encoding/binary"
	"sync"

	"golang.org/x/sys/unix"
)

// Entry is one name in a directory. It is used again for the next one: what is kept of
// it must be copied.
type Entry struct {
	// Name has any bytes but "/" and NUL.
	Name []byte
	// Info is filled when it was asked for. Otherwise, and for an entry that could
	// not be examined (a stale network file, say), it has the inode number and, where
	// the file system tells it, the type.
	Info Info
}

// ReadDir calls each for every name in the directory that the object is, in the order of
// the file system, without "." and "..", without private names; with a stat of each when
// withInfo is set. Names that vanish meanwhile are left out. It reads in batches, so that
// a directory of any size takes the same memory, and stops at the first error of each,
// which it returns as it is.
//
// For "." see [At.Stat], for ".." [At.StatDir]. An At from [At.Enter] lists the very
// directory that was entered.
func (a *At) ReadDir(withInfo bool, each func(*Entry) error) error {
	fd, err := openat(a.fd, a.name, listFlags, 0)
	if err != nil {
		return a.fail("readdir", a.noDir(err))
	}
	defer unix.Close(fd)
	var own error
	var e Entry
	err = scan(fd, func(d *dirent) bool {
		if bytes.HasPrefix(d.name, []byte(PrivatePrefix)) {
			return true
		}
		e = Entry{Name: d.name, Info: Info{Ino: d.ino, Mode: uint32(d.kind) << 12}}
		if withInfo && statRaw(fd, &d.name[0], &e.Info) == unix.ENOENT {
			return true
		}
		own = each(&e)
		return own == nil
	})
	if own != nil {
		return own
	}
	return a.fail("readdir", err)
}

// dirent is a directory entry inside the buffer that was read. A NUL follows the name.
type dirent struct {
	ino  uint64
	kind uint8
	name []byte
}

// The layout of the kernel's linux_dirent64: inode, offset, length, type, name.
const (
	direntLen  = 16
	direntType = 18
	direntName = 19
)

const scanBuffer = 64 << 10

var scanBuffers = sync.Pool{New: func() any { return new([scanBuffer]byte) }}

// scan calls each for the entries of a directory from the descriptor's offset on, until
// it returns false. "." and ".." are left out.
func scan(fd int, each func(*dirent) bool) error {
	pooled := scanBuffers.Get().(*[scanBuffer]byte)
	defer scanBuffers.Put(pooled)
	var d dirent
	for {
		var n int
		err := again(func() (err error) { n, err = unix.Getdents(fd, pooled[:]); return })
		if err != nil || n == 0 {
			return err
		}
		for buf := pooled[:n]; len(buf) > direntName; {
			size := int(binary.NativeEndian.Uint16(buf[direntLen:]))
			d.ino = binary.NativeEndian.Uint64(buf)
			d.kind = buf[direntType]
			d.name = buf[direntName:size]
			d.name = d.name[:bytes.IndexByte(d.name, 0)]
			buf = buf[size:]
			if string(d.name) == "." || string(d.name) == ".." {
				continue
			}
			if !each(&d) {
				return nil
			}
		}
	}
}

// Private is a private file's name and content, to be put into a new directory.
type Private struct {
	Name string
	Data []byte
}

// Mkdir makes the object a directory with exactly the permissions of mode. The private
// files, with mode 0644 and not synced, are in it before it can be seen: there is no
// instant at which the directory is there without its ACL.
func (a *At) Mkdir(mode uint32, files ...Private) error {
	if err := a.change("mkdir"); err != nil {
		return err
	}
	for _, f := range files {
		if err := privateName(f.Name); err != nil {
			return a.fail("mkdir", err)
		}
	}
	return a.fail("mkdir", a.mkdir(safeMode(mode, true), files))
}

func (a *At) mkdir(mode uint32, files []Private) error {
	if _, err := statAt(a.fd, a.name); err == nil {
		return unix.EEXIST
	} else if err != unix.ENOENT {
		return err
	}
	temp := tempName("mkdir")
	if err := again(func() error { return unix.Mkdirat(a.fd, temp, 0o700) }); err != nil {
		return err
	}
	err := fillDir(a.fd, temp, mode, files)
	if err == nil {
		err = renameNew(a.fd, temp, a.name)
	}
	if err != nil {
		rmdir(a.fd, temp)
	}
	return err
}

// fillDir puts private files into a new directory and then gives it its mode.
func fillDir(parent int, name string, mode uint32, files []Private) error {
	fd, err := openat(parent, name, listFlags, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, f := range files {
		if err := createFile(fd, f.Name, f.Data, 0o644, false); err != nil {
			return err
		}
	}
	made, err := statFd(fd)
	if err != nil {
		return err
	}
	// A parent's set-group-id bit passes on.
	return fchmod(fd, mode|made.Mode&unix.S_ISGID)
}

// renameNew renames to a name that is not taken, else EEXIST. On a file system that cannot
// promise that, a file or an empty directory put there this very instant is replaced.
func renameNew(dir int, from, to string) error {
	err := renameat(dir, from, dir, to, unix.RENAME_NOREPLACE)
	if !isErrno(err, unix.EINVAL, unix.ENOSYS) {
		return err
	}
	if _, err := statAt(dir, to); err == nil {
		return unix.EEXIST
	}
	return renameat(dir, from, dir, to, 0)
}
