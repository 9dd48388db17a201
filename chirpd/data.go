package chirpd

import (
	"io"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

func (s *session) open(r *wire.Open) error {
	if s.files.full() {
		return wire.TooManyOpen
	}
	var file *openFile
	var info confine.Info
	err := s.target(r.Path, func(a *place, rights acl.Rights) error {
		how, err := permitOpen(a, rights, r.Flags, openFlags(r.Flags))
		if err != nil {
			return err
		}
		if how&unix.O_ACCMODE != unix.O_RDONLY {
			rights |= acl.Write
		}
		file, info, err = openAt(a, how, permissions(r.Mode))
		if err == nil {
			file.rights = rights
		}
		return err
	})
	if err != nil {
		return err
	}
	s.reply(s.files.add(file))
	s.out.stat(&info)
	return nil
}

// openAt opens a file; in an allocation, one that may be written is counted, and made
// empty only then.
func openAt(a *place, flags int, mode uint32) (*openFile, confine.Info, error) {
	in := a.ex.allocs.of(a.At.DirPath())
	empties := in != nil && flags&unix.O_TRUNC != 0
	if empties {
		flags &^= unix.O_TRUNC
		if flags&unix.O_ACCMODE == unix.O_RDONLY { // only who may write gets here
			flags |= unix.O_RDWR
		}
	}
	if in != nil && flags&unix.O_ACCMODE != unix.O_RDONLY {
		defer a.ex.allocs.names.take(a.At.Path())()
	}
	file, info, err := a.OpenFile(flags, mode)
	if err != nil {
		return nil, info, err
	}
	f := &openFile{File: file, ex: a.ex, append: flags&unix.O_APPEND != 0}
	if flags&unix.O_ACCMODE != unix.O_RDONLY {
		f.writing(in, &info)
	}
	if empties && info.Size > 0 {
		if err = f.setLength(0); err == nil {
			info, err = f.Stat()
		}
		if err != nil {
			_ = f.shut()
			return nil, info, err
		}
	}
	return f, info, nil
}

// permitOpen decides with which flags the client may open, if at all. Who may only
// create gets a file that was not there before. Who may not read and asks for both ways
// while creating gets the file for writing: many programs ask so, and few read back.
func permitOpen(a *place, have acl.Rights, letters wire.OpenFlags, flags int) (int, error) {
	creates := letters&wire.OpenCreate != 0
	putOnly := creates && !have.Has(acl.Write)
	switch {
	case putOnly && !have.Has(acl.Put):
		return 0, &deniedError{acl.Put, a.Path()}
	case putOnly:
		flags |= unix.O_EXCL
	case letters.Writes() && !have.Has(acl.Write):
		return 0, &deniedError{acl.Write, a.Path()}
	}
	if flags&unix.O_ACCMODE == unix.O_WRONLY || have.Has(acl.Read) {
		return flags, nil
	}
	if creates && flags&unix.O_ACCMODE == unix.O_RDWR {
		return flags&^unix.O_ACCMODE | unix.O_WRONLY, nil
	}
	return 0, &deniedError{acl.Read, a.Path()}
}

// permissions is a mode from the wire as the system takes it.
func permissions(mode int64) uint32 { return uint32(mode) & 0o7777 }

// dirPermissions is permissions for a directory. The server itself has to enter it and
// read its ACL, else nobody could ever change it again.
func dirPermissions(mode int64) uint32 { return permissions(mode) | 0o500 }

func (s *session) close(r *wire.Close) error { return s.files.close(r.FD) }

func (s *session) pread(r *wire.Pread) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	_, err = s.sendPart(f.File, r.Offset, min(r.Length, wire.MaxData))
	return err
}

func (s *session) read(r *wire.Read) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	n, err := s.sendPart(f.File, f.offset, min(r.Length, wire.MaxData))
	f.offset += n
	return err
}

func (s *session) pwrite(r *wire.Pwrite) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	n, err := s.receivePart(f, r.Offset, min(r.Length, wire.MaxData))
	return s.wrote(n, err)
}

func (s *session) write(r *wire.Write) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	n, err := s.receivePart(f, f.offset, min(r.Length, wire.MaxData))
	f.offset += n
	if err == nil && f.append {
		var info confine.Info
		if info, err = f.Stat(); err == nil {
			f.offset = info.Size
		}
	}
	return s.wrote(n, err)
}

// wrote answers a write: with the count as soon as anything was written, so that the
// client knows how far it got. The error comes again when it goes on.
func (s *session) wrote(n int64, err error) error {
	if n == 0 && err != nil {
		return err
	}
	if err := s.skipBody(); err != nil {
		return err
	}
	s.reply(n)
	return nil
}

// receivePart takes n bytes of the request's data into the file.
func (s *session) receivePart(f *openFile, offset, n int64) (int64, error) {
	return s.receive(n, func(p []byte) (int, error) {
		k, err := f.store(p, offset)
		offset += int64(k)
		return k, err
	})
}

// receive gives n bytes of the request's data to write, in pieces. The count that it
// returns has been written, whatever the error.
func (s *session) receive(n int64, write func([]byte) (int, error)) (done int64, err error) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	for done < n {
		p := piece[:min(n-done, pieceSize)]
		if err := s.takeBody(p); err != nil {
			return done, err
		}
		k, err := write(p)
		done += int64(k)
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (s *session) lseek(r *wire.Lseek) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	base := int64(0)
	switch r.Whence {
	case io.SeekStart:
	case io.SeekCurrent:
		base = f.offset
	case io.SeekEnd:
		info, err := f.Stat()
		if err != nil {
			return err
		}
		base = info.Size
	default:
		return wire.InvalidRequest
	}
	to := base + r.Offset
	if to < 0 {
		return wire.InvalidRequest
	}
	f.offset = to
	s.reply(to)
	return nil
}

func (s *session) fstat(r *wire.Fstat) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return s.replyStat(&info)
}

func (s *session) fstatfs(r *wire.Fstatfs) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	st, err := f.Statfs()
	if err == nil {
		f.ex.allocs.limit(&st, f.File.Path())
	}
	return s.replyStatfs(&st, err)
}

func (s *session) fsync(r *wire.Fsync) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	return f.Sync()
}

func (s *session) ftruncate(r *wire.Ftruncate) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	return f.setLength(r.Length)
}

func (s *session) fchmod(r *wire.Fchmod) error {
	f, err := s.files.getFor(r.FD, acl.Write)
	if err != nil {
		return err
	}
	return f.Chmod(permissions(r.Mode))
}

func (s *session) fchown(r *wire.Fchown) error {
	_, err := s.files.getFor(r.FD, acl.Write)
	return err
}
