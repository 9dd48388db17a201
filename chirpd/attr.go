package chirpd

import (
	"errors"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

func (s *session) stat(r *wire.StatPath) error { return s.statPath(r.Path, true) }

func (s *session) lstat(r *wire.Lstat) error { return s.statPath(r.Path, false) }

func (s *session) statPath(path string, follow bool) error {
	var info confine.Info
	err := s.object(path, follow, acl.List, func(f *found) error {
		info = f.info
		return nil
	})
	if err != nil {
		return err
	}
	return s.replyStat(&info)
}

// replyStat sends 0 and a stat line.
func (s *session) replyStat(i *confine.Info) error {
	s.reply(0)
	s.out.stat(i)
	return nil
}

// maxStatLine is the longest stat line: 13 numbers.
const maxStatLine = 13 * maxHeader

func (o *output) stat(i *confine.Info) {
	o.room(maxStatLine)
	o.buf = statOf(i).Append(o.buf)
}

func statOf(i *confine.Info) *wire.Stat {
	return &wire.Stat{
		Dev: int64(i.Dev), Ino: int64(i.Ino), Mode: int64(i.Mode), Nlink: int64(i.Nlink),
		UID: int64(i.UID), GID: int64(i.GID), Rdev: int64(i.Rdev),
		Size: i.Size, Blksize: i.Blksize, Blocks: i.Blocks,
		Atime: i.Atime.Sec, Mtime: i.Mtime.Sec, Ctime: i.Ctime.Sec,
	}
}

// replyStatfs sends 0 and a statfs line.
func (s *session) replyStatfs(st *unix.Statfs_t, err error) error {
	if err != nil {
		return err
	}
	s.reply(0)
	s.out.room(7 * maxHeader)
	line := wire.Statfs{Type: st.Type, Bsize: st.Bsize, Blocks: int64(st.Blocks), Bfree: int64(st.Bfree),
		Bavail: int64(st.Bavail), Files: int64(st.Files), Ffree: int64(st.Ffree)}
	s.out.buf = line.Append(s.out.buf)
	return nil
}

// access asks both the ACL and the system whether the client, through the server, may
// use the object so.
func (s *session) access(r *wire.Access) error {
	if r.Mode&^7 != 0 {
		return wire.InvalidRequest
	}
	return s.find(r.Path, true, func(f *found) error {
		if want := accessRights(f, r.Mode); !f.rights.Has(want) {
			return &deniedError{want, f.Path()}
		}
		if f.missing != nil {
			return f.missing
		}
		return f.Access(uint32(r.Mode))
	})
}

// accessRights is what a mode of access asks of the ACL. Searching a directory is
// listing it; for being there any right to look will do.
func accessRights(f *found, mode int64) (want acl.Rights) {
	if mode == 0 && !f.rights.Has(acl.Read) {
		return acl.List
	}
	if mode&unix.R_OK != 0 {
		want |= acl.Read
	}
	if mode&unix.W_OK != 0 {
		want |= acl.Write
	}
	if mode&unix.X_OK != 0 && f.info.IsDir() {
		want |= acl.List
	} else if mode&unix.X_OK != 0 {
		want |= acl.Execute
	}
	return want
}

func (s *session) chmod(r *wire.Chmod) error {
	return s.object(r.Path, true, acl.Write, func(f *found) error {
		if f.info.IsDir() {
			return f.Chmod(dirPermissions(r.Mode))
		}
		return f.Chmod(permissions(r.Mode))
	})
}

func (s *session) chown(r *wire.Chown) error { return s.keepOwner(r.Path, true) }

func (s *session) lchown(r *wire.Lchown) error { return s.keepOwner(r.Path, false) }

// keepOwner answers a change of owner: it succeeds without effect where the client
// may write.
func (s *session) keepOwner(path string, follow bool) error {
	return s.object(path, follow, acl.Write, func(*found) error { return nil })
}

func (s *session) truncate(r *wire.Truncate) error {
	return s.object(r.Path, true, acl.Write, func(f *found) error {
		if f.ex.allocs.of(f.At.DirPath()) == nil {
			return f.Truncate(r.Length)
		}
		file, _, err := openAt(f.place, unix.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(file.setLength(r.Length), file.shut())
	})
}

func (s *session) utime(r *wire.Utime) error {
	return s.object(r.Path, true, acl.Write, func(f *found) error {
		return f.Utimens(unix.Timespec{Sec: r.Actime}, unix.Timespec{Sec: r.Mtime})
	})
}
