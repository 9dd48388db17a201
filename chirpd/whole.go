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
	err := s.put(r.Path, r.Mode, func(p *confine.Put) error {
		s.body = r.Length
		_, err := s.receive(r.Length, p.Write)
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
	err := s.put(r.Path, streamMode, func(p *confine.Put) error {
		var err error
		count, err = io.Copy(p, s.in)
		return err
	})
	if err == nil {
		s.reply(count)
	}
	return err
}

// streamMode is the mode of a file that putstream makes; the request names none.
const streamMode = 0o644

// put answers 0, lets receive write the file that path names, and puts it in place.
func (s *session) put(path string, mode int64, receive func(*confine.Put) error) error {
	a, p, opts, err := s.beginPut(path)
	if err != nil {
		return err
	}
	defer a.Close()
	s.reply(0)
	if err := s.out.flush(); err != nil {
		return errors.Join(err, p.Abort())
	}
	s.replied = false // the reply that counts is yet to come
	if err := receive(p); err != nil {
		return errors.Join(err, p.Abort())
	}
	return p.Commit(permissions(mode), opts)
}

// putAttempts bounds how often the beginning of a put starts again when names change
// under it.
const putAttempts = 16

// beginPut finds the place of a file that is to be written whole. The At must outlive
// the Put, and both are the caller's.
func (s *session) beginPut(path string) (*confine.At, *confine.Put, confine.CommitOptions, error) {
	var a *confine.At
	var p *confine.Put
	var opts confine.CommitOptions
	err := error(confine.ErrChanged)
	for range putAttempts {
		if a, err = s.srv.root.Walk(wire.CleanPath(path), true); err == nil {
			if p, opts, err = s.permitPut(a); err == nil {
				return a, p, opts, nil
			}
			a.Close()
		}
		if !errors.Is(err, confine.ErrChanged) {
			break
		}
	}
	return nil, nil, opts, err
}

// permitPut begins a put if the client may replace, or else create, the file. One that
// takes another's place is on disk before it does, so that a host that crashes has the
// old file or the new one.
func (s *session) permitPut(a *confine.At) (*confine.Put, confine.CommitOptions, error) {
	_, missing := a.Stat()
	opts := confine.CommitOptions{Sync: missing == nil}
	have, err := s.rights(a)
	switch {
	case err != nil:
	case have.Has(acl.Write):
	case !have.Has(acl.Put):
		err = &deniedError{acl.Write, a.Path()}
	case missing == nil:
		err = wire.AlreadyExists
	default:
		opts.Exclusive = true
	}
	if err != nil {
		return nil, opts, err
	}
	p, err := a.CreateTemp()
	return p, opts, err
}
