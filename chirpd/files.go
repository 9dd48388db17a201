package chirpd

import (
	"fmt"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// openFile is one descriptor of a session.
type openFile struct {
	*confine.File
	ex     *export
	grown  *grown     // counts in an allocation, when open for writing there; else nil
	rights acl.Rights // the client's when it was opened; w if it is open for writing
	append bool       // every write goes to the end
	offset int64      // for read, write and lseek
}

// pwrite is WriteAt of os.File, which forgets what it has written when an error comes.
func (f *openFile) pwrite(p []byte, offset int64) (done int, err error) {
	for done < len(p) {
		n, err := unix.Pwrite(int(f.Fd()), p[done:], offset+int64(done))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// pread reads once: what comes may be less than p, and is none only at the file's end.
func pread(f *confine.File, p []byte, offset int64) (int, error) {
	for {
		n, err := unix.Pread(int(f.Fd()), p, offset)
		if err != unix.EINTR {
			return max(n, 0), err
		}
	}
}

// fileTable numbers a session's open files, the lowest free number first.
type fileTable struct {
	max  int
	list []*openFile // nil where a number is free
	free int         // no number below it is free
}

// full says whether another file may not be opened.
func (t *fileTable) full() bool { return t.lowest() >= t.max }

func (t *fileTable) lowest() int {
	for t.free < len(t.list) && t.list[t.free] != nil {
		t.free++
	}
	return t.free
}

// add takes f over and gives its number; the table must not be full.
func (t *fileTable) add(f *openFile) int64 {
	fd := t.lowest()
	if fd == len(t.list) {
		t.list = append(t.list, nil)
	}
	t.list[fd] = f
	return int64(fd)
}

func (t *fileTable) get(fd int64) (*openFile, error) {
	if fd < 0 || fd >= int64(len(t.list)) || t.list[fd] == nil {
		return nil, fmt.Errorf("descriptor %d is not open: %w", fd, wire.BadFD)
	}
	return t.list[fd], nil
}

// getFor is get for what needs a right beyond the way in which the file is open.
func (t *fileTable) getFor(fd int64, want acl.Rights) (*openFile, error) {
	f, err := t.get(fd)
	if err == nil && !f.rights.Has(want) {
		return nil, &deniedError{want, f.Path()}
	}
	return f, err
}

// close closes and frees a number. The number is free even when the close fails.
func (t *fileTable) close(fd int64) error {
	f, err := t.get(fd)
	if err != nil {
		return err
	}
	t.list[fd] = nil
	t.free = min(t.free, int(fd))
	return f.shut()
}

func (t *fileTable) closeAll() {
	for fd := range t.list {
		if t.list[fd] != nil {
			_ = t.close(int64(fd)) // nobody is there to be told
		}
	}
}

// openFlags turns the letters of an open into flags of open(2).
func openFlags(f wire.OpenFlags) int {
	flags := unix.O_RDONLY
	switch writes, reads := f&(wire.OpenWrite|wire.OpenAppend) != 0, f&wire.OpenRead != 0; {
	case writes && reads:
		flags = unix.O_RDWR
	case writes:
		flags = unix.O_WRONLY
	}
	for _, m := range [...]struct {
		letter wire.OpenFlags
		flag   int
	}{
		{wire.OpenAppend, unix.O_APPEND},
		{wire.OpenTruncate, unix.O_TRUNC},
		{wire.OpenCreate, unix.O_CREAT},
		{wire.OpenSync, unix.O_SYNC},
	} {
		if f&m.letter != 0 {
			flags |= m.flag
		}
	}
	if f&(wire.OpenCreate|wire.OpenExclude) == wire.OpenCreate|wire.OpenExclude {
		flags |= unix.O_EXCL
	}
	return flags
}
