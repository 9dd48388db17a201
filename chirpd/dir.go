package chirpd

import (
	"bytes"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

func (s *session) getdir(r *wire.Getdir) error {
	return s.list(r.Path, false)
}

func (s *session) getlongdir(r *wire.Getlongdir) error {
	return s.list(r.Path, true)
}

// list sends a directory's names, with stat lines in a long listing, as they are read:
// it takes the same memory for any number of them.
func (s *session) list(path string, long bool) error {
	return s.directory(path, acl.List, func(at, inside *place) error {
		self, err := inside.Stat()
		if err != nil {
			return err
		}
		parent, err := at.StatDir()
		if err != nil {
			return err
		}
		begin := func() {
			s.reply(0)
			s.entryLines([]byte("."), &self, long)
			s.entryLines([]byte(".."), &parent, long)
		}
		err = inside.ReadDir(long, func(e *confine.Entry) error {
			if !s.replied {
				begin()
			}
			s.srv.shown(inside, e, long)
			s.entryLines(e.Name, &e.Info, long)
			return s.out.err
		})
		if err != nil {
			return err
		}
		if !s.replied {
			begin()
		}
		s.out.write([]byte("\n"))
		return nil
	})
}

// entryLines sends one entry of a listing. A line cannot carry a name that holds a
// line feed: such an entry is left out.
func (s *session) entryLines(name []byte, info *confine.Info, long bool) {
	if bytes.IndexByte(name, '\n') >= 0 {
		if !s.srv.oddNames.Swap(true) {
			s.log.Warn("names with a line feed are left out of listings, as the protocol cannot carry them", "name", string(name))
		}
		return
	}
	s.out.write(name)
	s.out.write([]byte("\n"))
	if long {
		s.out.stat(info)
	}
}

func (s *session) statfs(r *wire.StatfsPath) error {
	var st unix.Statfs_t
	err := s.object(r.Path, true, acl.List, func(f *found) (err error) {
		if f.ex == s.srv.front { // it has no space of its own
			st, err = s.srv.exports[0].space()
			return err
		}
		if st, err = f.Statfs(); err == nil {
			f.ex.allocs.limit(&st, f.At.Path())
		}
		return err
	})
	return s.replyStatfs(&st, err)
}

// localpath tells the path within the export, as the real server does: where the
// export lies on the server's disk is not the client's business.
func (s *session) localpath(r *wire.Localpath) error {
	err := s.object(r.Path, true, acl.List, func(*found) error { return nil })
	if err != nil {
		return err
	}
	return s.replyText([]byte(wire.CleanPath(r.Path)))
}
