package chirpd

import (
	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

func (s *session) unlink(r *wire.Unlink) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error { return a.Unlink() })
}

func (s *session) rmdir(r *wire.Rmdir) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error { return a.Rmdir() })
}

// rmall needs d where the directory lies; the ACLs below do not count, a ticket's
// masks do.
func (s *session) rmall(r *wire.Rmall) error {
	return s.entry(r.Path, acl.Delete, func(a *place) error {
		return a.RemoveAll(s.srv.ctx, func(dir *confine.At) error {
			return s.maskAllows(&place{dir, a.ex}, acl.Delete)
		})
	})
}

// mkdir makes a directory that has the ACL of the one it is made in, if that comes from
// a file; or, by the right v, one in which the maker has the rights that v names.
func (s *session) mkdir(r *wire.Mkdir) error {
	return s.entry(r.Path, 0, func(a *place) error {
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
		if !fromTree {
			return a.Mkdir(dirPermissions(r.Mode))
		}
		return a.Mkdir(dirPermissions(r.Mode), confine.Private{Name: aclName, Data: list.AppendTo(nil)})
	})
}

func (s *session) rename(r *wire.Rename) error {
	return s.entry(r.Path, acl.Read|acl.Delete, func(from *place) error {
		if err := s.maskedBelow(from); err != nil {
			return err
		}
		return s.entry(r.NewPath, acl.Write, func(to *place) error { return from.Rename(to.At) })
	})
}

// link makes another name for a file. A link is not followed: its own directory counts.
func (s *session) link(r *wire.Link) error {
	return s.entry(r.Path, acl.Read|acl.Write, func(old *place) error {
		return s.entry(r.NewPath, acl.Write, func(a *place) error { return a.Link(old.At) })
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
