package chirpd

import (
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

func (s *session) unlink(r *wire.Unlink) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error {
		return a.ex.allocs.removing(a.At, a.Unlink)
	})
}

func (s *session) rmdir(r *wire.Rmdir) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error {
		return a.ex.allocs.removingDir(a.At.Path(), a.Rmdir)
	})
}

// rmall needs d where the directory lies; the ACLs below do not count, a ticket's
// masks do.
func (s *session) rmall(r *wire.Rmall) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error {
		check := func(dir *confine.At) error { return s.maskAllows(&place{dir, a.ex}, acl.Delete) }
		if a.ex.allocs.any.Load() {
			return a.ex.allocs.removeTree(s.srv.ctx, a.At, check, 0)
		}
		return a.RemoveAll(s.srv.ctx, check)
	})
}

// mkdir makes a directory that has the ACL of the one it is made in, if that comes from
// a file; or, by the right v, one in which the maker has the rights that v names.
func (s *session) mkdir(r *wire.Mkdir) error {
	return s.makeDir(r.Path, r.Mode, func(_ *place, mkdir func() error) error { return mkdir() })
}

// makeDir lets how make a directory at path by the function that it is given.
func (s *session) makeDir(path string, mode int64, how func(*place, func() error) error) error {
	return s.entry(path, 0, func(a *place) error {
		list, fromTree, err := a.ex.acls.in(a.At)
		if err != nil {
			return err
		}
		switch have := s.rightsBy(list, a); {
		case have.Has(acl.Write):
		case have.Has(acl.Reserve):
			list, fromTree = acl.Reset(s.who, have.Reserved()), true
		default:
			return &deniedError{acl.Write, a.Path()}
		}
		var private []confine.Private
		if fromTree {
			private = []confine.Private{{Name: aclName, Data: list.AppendTo(nil)}}
		}
		return how(a, func() error { return a.Mkdir(dirPermissions(mode), private...) })
	})
}

func (s *session) rename(r *wire.Rename) error {
	return s.entry(r.Path, acl.Read|acl.Delete, func(from *place) error {
		if err := s.maskedBelow(from); err != nil {
			return err
		}
		return s.entry(r.NewPath, acl.Write, func(to *place) error {
			if from.ex != to.ex {
				return unix.EXDEV
			}
			return from.ex.allocs.renaming(from.At, to.At, func() error { return from.Rename(to.At) })
		})
	})
}

// link makes another name for a file. A link is not followed: its own directory counts.
func (s *session) link(r *wire.Link) error {
	return s.entry(r.Path, acl.Read|acl.Write, func(old *place) error {
		return s.entry(r.NewPath, acl.Write, func(a *place) error {
			if old.ex != a.ex {
				return unix.EXDEV
			}
			return a.ex.allocs.linking(old.At, a.At, func() error { return a.Link(old.At) })
		})
	})
}

func (s *session) symlink(r *wire.Symlink) error {
	return s.entry(r.NewPath, acl.Write, func(a *place) error { return a.Symlink(r.Target) })
}

// readlink tells a link's text, wherever it leads.
func (s *session) readlink(r *wire.Readlink) error {
	if r.Length == 0 {
		return wire.InvalidRequest
	}
	var target string
	err := s.object(r.Path, false, acl.Read, func(f *found) (err error) {
		target, err = f.Readlink()
		return err
	})
	if err != nil {
		return err
	}
	return s.replyText([]byte(target[:min(int64(len(target)), r.Length)]))
}
