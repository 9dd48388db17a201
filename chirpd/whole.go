package chirpd

import (
	"errors"
	"io"
	"math"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// readable opens a file that the client may read.
func (s *session) readable(path string) (file *confine.File, info confine.Info, err error) {
	err = s.object(path, true, acl.Read, func(f *found) (err error) {
		file, info, err = f.OpenFile(unix.O_RDONLY, 0)
		return err
	})
	return file, info, err
}

func (s *session) getfile(r *wire.Getfile) error {
	f, info, err := s.readable(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if info.Size <= copyMax {
		_, err = s.sendPart(f, 0, info.Size)
		return err
	}
	return s.sendExactly(f, 0, info.Size)
}

func (s *session) getstream(r *wire.Getstream) error {
	f, _, err := s.readable(r.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	s.reply(0)
	s.ending = true
	_, err = s.sendUpTo(f, 0, math.MaxInt64)
	return err
}

// putfile takes a whole file. Its data goes to a file beside it, which takes its
// place when it is whole.
func (s *session) putfile(r *wire.Putfile) error {
	err := s.put(r.Path, r.Mode, func(write func([]byte) (int, error)) error {
		s.body = r.Length
		_, err := s.receive(r.Length, write)
		return err
	})
	if err == nil {
		s.reply(r.Length)
	}
	return err
}

// putstream takes a file that ends with the connection.
func (s *session) putstream(r *wire.Putstream) error {
	s.ending = true
	count := int64(0)
	err := s.put(r.Path, streamMode, func(write func([]byte) (int, error)) (err error) {
		count, err = io.Copy(writer(write), s.in)
		return err
	})
	if err == nil {
		s.reply(count)
	}
	return err
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// streamMode is the mode of a file that putstream makes; the request names none.
const streamMode = 0o644

// put answers 0, lets receive write the file that path names, and puts it in place.
func (s *session) put(path string, mode int64, receive func(write func([]byte) (int, error)) error) error {
	a, p, how, err := s.beginPut(path)
	if err != nil {
		return err
	}
	defer a.Close()
	defer func() { _ = p.Abort() }() // nothing after Commit
	s.reply(0)
	if err := s.out.flush(); err != nil {
		return err
	}
	s.replied = false // the reply that counts is yet to come
	room := roomFor(a)
	defer room.giveBack()
	if err := receive(func(b []byte) (int, error) { return room.write(p, b) }); err != nil {
		return err
	}
	if how == toReplace { // a host that crashes then has the old file or the new one
		if err := p.Sync(); err != nil {
			return err
		}
	}
	return room.commit(a.At, func() error {
		return p.Commit(permissions(mode), confine.CommitOptions{Exclusive: how == onlyCreate})
	})
}

// putKind says what a put may do to the name.
type putKind uint8

const (
	toCreate   putKind = iota // nothing was there
	toReplace                 // a file was there
	onlyCreate                // nothing was there, and the client may not replace
)

// putAttempts bounds how often the beginning of a put starts again when names change
// under it.
const putAttempts = 16

// beginPut finds the place of a file that is to be written whole. The At must outlive
// the Put, and both are the caller's.
func (s *session) beginPut(path string) (*place, *confine.Put, putKind, error) {
	err := error(confine.ErrChanged)
	for range putAttempts {
		var a *place
		if a, err = s.srv.walk(path); err == nil {
			p, how, failed := s.permitPut(a)
			if failed == nil {
				return a, p, how, nil
			}
			a.Close()
			err = failed
		}
		if !errors.Is(err, confine.ErrChanged) {
			break
		}
	}
	return nil, nil, 0, err
}

// permitPut begins a put if the client may replace, or else create, the file.
func (s *session) permitPut(a *place) (*confine.Put, putKind, error) {
	how := toReplace
	if _, err := a.Stat(); errors.Is(err, unix.ENOENT) {
		how = toCreate
	}
	have, err := s.rights(a)
	switch {
	case err != nil:
	case have.Has(acl.Write):
	case !have.Has(acl.Put):
		err = &deniedError{acl.Write, a.Path()}
	case how == toReplace:
		err = wire.AlreadyExists
	default:
		how = onlyCreate
	}
	if err != nil {
		return nil, 0, err
	}
	p, err := a.CreateTemp()
	return p, how, err
}
