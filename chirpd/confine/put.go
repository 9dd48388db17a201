package confine

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Put is a whole file on its way in: written beside its target, and put in the target's
// place by Commit. One of Commit and Abort ends it; the At must stay open until then.
type Put struct {
	// File takes the data; it is open for reading and writing.
	*os.File
	at   *At
	temp string // its private name, or empty while it has none
}

// CommitOptions say how a Put ends.
type CommitOptions struct {
	// Sync puts the data and the name on disk first.
	Sync bool
	// Exclusive makes a target that exists an error, EEXIST.
	Exclusive bool
}

// CreateTemp begins a Put whose target is the object. It refuses at once a target that
// could not be opened for writing: a directory, a FIFO, a link, a file without write
// permission.
func (a *At) CreateTemp() (*Put, error) {
	if err := a.change("put"); err != nil {
		return nil, err
	}
	p, err := a.createTemp()
	return p, a.fail("put", err)
}

func (a *At) createTemp() (*Put, error) {
	info, err := statAt(a.fd, a.name)
	if err == nil {
		if err = info.openable(); err == nil {
			err = again(func() error {
				return unix.Faccessat(a.fd, a.name, unix.W_OK, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EACCESS)
			})
		}
	}
	if err != nil && err != unix.ENOENT {
		return nil, err
	}
	if a.root.proc {
		fd, err := openat(a.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
		if err == nil {
			return &Put{File: os.NewFile(uintptr(fd), a.Path()), at: a}, nil
		}
		if !isErrno(err, unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOENT) {
			return nil, err
		}
	}
	return a.namedTemp()
}

// namedTemp is for file systems that have no nameless files.
func (a *At) namedTemp() (*Put, error) {
	temp := tempName("put")
	fd, err := openat(a.fd, temp, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	return &Put{File: os.NewFile(uintptr(fd), a.Path()), at: a, temp: temp}, nil
}

// Commit puts the file in its target's place in one step, and closes it. A new file gets
// the permissions of mode; one that was there passes on its permissions and owner. Where
// it has several names, or an owner that the server cannot give away, its content is
// replaced in place instead, after space for all of it has been set aside.
// When Commit fails the target is as it was, but for a disk that fails in the last case,
// and nothing is left.
func (p *Put) Commit(mode uint32, opts CommitOptions) error {
	err := p.commit(safeMode(mode, false), opts)
	if e := p.discard(); err == nil {
		err = e
	}
	return p.at.fail("put", err)
}

// Abort gives up the file; nothing of it is left. After Commit it does nothing.
func (p *Put) Abort() error { return p.at.fail("put", p.discard()) }

func (p *Put) discard() error {
	if p.File == nil {
		return nil
	}
	err := p.File.Close()
	p.File = nil
	if p.temp != "" {
		if e := unlinkat(p.at.fd, p.temp, 0); err == nil {
			err = e
		}
		p.temp = ""
	}
	return err
}

func (p *Put) commit(mode uint32, opts CommitOptions) error {
	if p.File == nil {
		return os.ErrClosed
	}
	for range openAttempts {
		old, err := statAt(p.at.fd, p.at.name)
		switch {
		case err == unix.ENOENT:
			if err = p.publish(mode, opts, true); err == unix.EEXIST && !opts.Exclusive {
				continue // it appeared just now
			}
			return err
		case err != nil:
			return err
		case opts.Exclusive:
			return unix.EEXIST
		}
		if err := old.openable(); err != nil {
			return err
		}
		if old.Nlink > 1 || !p.inherit(&old) {
			return p.inPlace(opts.Sync)
		}
		return p.publish(safeMode(old.Mode, false), opts, false)
	}
	return ErrChanged
}

// inherit gives the new file the owner of the old one, if that can be done.
func (p *Put) inherit(old *Info) bool {
	fd := int(p.Fd())
	own, err := statFd(fd)
	if err != nil {
		return false
	}
	return own.UID == old.UID && own.GID == old.GID ||
		again(func() error { return unix.Fchown(fd, int(old.UID), int(old.GID)) }) == nil
}

// publish gives the file its name: a new one, or that of the file in its place.
func (p *Put) publish(mode uint32, opts CommitOptions, isNew bool) error {
	fd := int(p.Fd())
	if err := fchmod(fd, mode); err != nil {
		return err
	}
	if opts.Sync {
		if err := fsync(fd); err != nil {
			return err
		}
	}
	if err := p.name(fd, isNew); err != nil {
		return err
	}
	if opts.Sync {
		return syncDir(p.at.fd)
	}
	return nil
}

// name links a nameless file: to the target itself when that is new, else to a private
// name. A private name is then renamed to the target.
func (p *Put) name(fd int, isNew bool) error {
	if p.temp == "" {
		name := p.at.name
		if !isNew {
			name = tempName("put")
		}
		err := again(func() error {
			return unix.Linkat(unix.AT_FDCWD, procPath(fd), p.at.fd, name, unix.AT_SYMLINK_FOLLOW)
		})
		if err != nil || isNew {
			return err
		}
		p.temp = name
	}
	var err error
	if isNew {
		err = renameNew(p.at.fd, p.temp, p.at.name)
	} else {
		err = renameat(p.at.fd, p.temp, p.at.fd, p.at.name, 0)
	}
	if err == nil {
		p.temp = ""
	}
	return err
}

// inPlace copies the content over that of a file which must stay the same file.
func (p *Put) inPlace(sync bool) error {
	size, err := p.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err = p.Seek(0, io.SeekStart); err != nil {
		return err
	}
	fd, _, err := p.at.open(unix.O_WRONLY, 0)
	if err != nil {
		return err
	}
	out := p.at.file(fd)
	err = reserve(fd, size)
	if err == nil {
		_, err = io.Copy(out.File, p.File)
	}
	if err == nil {
		err = out.Truncate(size)
	}
	if err == nil && sync {
		err = out.Sync()
	}
	if e := out.Close(); err == nil {
		err = e
	}
	return err
}

// reserve sets space aside where the file system can, so that a full disk is found out
// before anything is overwritten.
func reserve(fd int, size int64) error {
	if size == 0 {
		return nil
	}
	err := again(func() error { return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	if isErrno(err, unix.EOPNOTSUPP, unix.ENOSYS) {
		return nil
	}
	return err
}
