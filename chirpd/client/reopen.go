package client

import (
	"errors"
	"fmt"
	"strings"

	"skeletonkey/chirpd/wire"
)

// reopening is a file that is being opened again on a new connection.
type reopening struct {
	file  *File
	path  string
	call  *Call
	fd    int64
	stat  wire.Stat
	stale error // it is not the same file
}

// errMoved says that a file was not where it was while a Rename was under way; the
// next attempt looks where it is then.
var errMoved = errors.New("files are being renamed")

// reopen opens the lane's files on c, which nobody else uses yet, all in one go.
// It fails when the connection is lost, or the server or a Rename needs more time.
func (l *lane) reopen(c *conn) ([]*reopening, error) {
	var files []*reopening
	l.mu.Lock()
	for f := range l.files {
		files = append(files, &reopening{file: f, path: f.Path()})
	}
	l.mu.Unlock()
	before := l.client.moving()
	for _, r := range files {
		r.start(c, l)
	}
	var failed error
	for _, r := range files {
		<-r.call.done
		if failed == nil {
			failed = r.check()
		}
	}
	if failed != nil {
		return nil, failed
	}
	for _, r := range files {
		if r.stale != nil && (l.client.moving() != before || r.file.Path() != r.path || before.underWay > 0) {
			return nil, errMoved
		}
	}
	return files, nil
}

func (r *reopening) start(c *conn, l *lane) {
	keep := wire.OpenRead | wire.OpenWrite | wire.OpenAppend | wire.OpenSync
	r.call = l.client.call("open", r.path, pure, &wire.Open{Path: r.path, Flags: r.file.flags & keep})
	r.call.bound = true
	r.call.read = func(in *conn, fd int64) (err error) {
		r.fd = fd
		r.stat, err = in.stat()
		return err
	}
	r.call.init(l)
	if err := c.enqueue(r.call); err != nil {
		r.call.finish(0, err)
	}
}

// check looks at what the server has opened. It sets stale, or fails when that
// cannot be known yet.
func (r *reopening) check() error {
	var refused *wire.Error
	err := r.call.err
	switch {
	case err == nil:
		r.stale = r.file.differs(&r.stat)
		return nil
	case !errors.As(err, &refused) || !answered(refused.Code):
		return err
	}
	r.stale = stale("cannot be opened again after the connection was lost: " + refused.Code.Error())
	return nil
}

// answered reports whether a failed open tells about the file, not about the
// server's condition or the connection's.
func answered(c wire.Code) bool {
	switch c {
	case wire.NotAuthorized, wire.DoesntExist, wire.AlreadyExists, wire.TooBig, wire.InvalidRequest,
		wire.IsDir, wire.NotDir, wire.CrossDeviceLink, wire.IsAPipe, wire.NotSupported, wire.NameTooLong:
		return true
	}
	return false
}

// differs says why st is not of the file that was opened.
func (f *File) differs(st *wire.Stat) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := &f.opened
	switch {
	case st.Dev != old.Dev || st.Ino != old.Ino:
		return stale("another file is there now")
	case st.Mode&wire.ModeType != old.Mode&wire.ModeType:
		return stale("a file of another kind is there now")
	case st.Ctime < old.Ctime:
		return stale("an older file is there now")
	case st.Size < f.end:
		return stale(fmt.Sprintf("the server has lost data: %d bytes are left of %d", st.Size, f.end))
	}
	return nil
}

// adopt gives the reopened files their descriptors on c. Files that are not the same
// are out of the lane's care, and those that were closed meanwhile are closed on the
// server too. l.mu is held.
func (l *lane) adopt(c *conn, files []*reopening) {
	for _, r := range files {
		_, open := l.files[r.file]
		switch {
		case open && r.stale == nil:
			r.file.on, r.file.fd = c, r.fd
			continue
		case open:
			r.file.stale = r.stale
			delete(l.files, r.file)
			l.client.opt.Log.Warn("open file lost", "file", l.client.url(r.path), "cause", r.stale)
		}
		if r.call.err == nil {
			l.forsake(c, r.fd)
		}
	}
}

// moves is a state of this client's renames.
type moves struct{ underWay, ended int }

func (c *Client) moving() moves {
	c.mu.Lock()
	defer c.mu.Unlock()
	return moves{c.renames, c.moves}
}

// moved notes the end of a Rename, which has taken place when err is nil: open files
// are found by their new path from now on.
func (c *Client) moved(path, newPath string, err error) {
	path, newPath = wire.CleanPath(path), wire.CleanPath(newPath)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renames--
	c.moves++
	if err != nil {
		return
	}
	for f := range c.files {
		f.mu.Lock()
		if rest, ok := strings.CutPrefix(wire.CleanPath(f.path), path); ok && (rest == "" || rest[0] == '/') {
			f.path = newPath + rest
		}
		f.mu.Unlock()
	}
}

// shrunk notes that files were made length bytes long.
func (c *Client) shrunk(which func(*File) bool, length int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for f := range c.files {
		if which(f) {
			f.mu.Lock()
			f.end = min(f.end, length)
			f.mu.Unlock()
		}
	}
}
