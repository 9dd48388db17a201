package chirpd

import (
	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/wire"
)

// whoami tells the subject whose rights the client has; with a ticket, its owner.
func (s *session) whoami(r *wire.Whoami) error {
	return s.replyText([]byte(s.who[:min(int64(len(s.who)), r.Length)]))
}

// getacl tells the ACL that holds in a directory, to anyone.
func (s *session) getacl(r *wire.Getacl) error {
	var list acl.ACL
	err := s.directory(r.Path, 0, func(_, inside *place) (err error) {
		list, _, err = inside.ex.acls.in(inside.At)
		return err
	})
	if err != nil {
		return err
	}
	s.reply(0)
	s.out.write(append(list.AppendTo(nil), '\n'))
	return nil
}

func (s *session) setacl(r *wire.Setacl) error {
	var rights acl.Rights
	if r.Rights != "" {
		var err error
		if rights, err = acl.ParseRights(r.Rights); err != nil {
			return &wire.Error{Op: "setacl", Path: r.Path, Code: wire.InvalidRequest, Err: err}
		}
	}
	return s.changeACL(r.Path, func(list acl.ACL) acl.ACL { return list.Set(r.Subject, rights) })
}

// resetacl leaves the client alone in the ACL, with the rights it asks for and a, so
// that it does not lock itself out.
func (s *session) resetacl(r *wire.Resetacl) error {
	rights, err := acl.ParseRights(r.Rights)
	if err != nil {
		return &wire.Error{Op: "resetacl", Path: r.Path, Code: wire.InvalidRequest, Err: err}
	}
	return s.changeACL(r.Path, func(acl.ACL) acl.ACL { return acl.Reset(s.who, rights|acl.Admin) })
}

// changeACL writes a directory's own ACL, made from the one that holds there. Changes
// to one directory take turns, so that none is lost.
func (s *session) changeACL(path string, change func(acl.ACL) acl.ACL) error {
	return s.directory(path, acl.Admin, func(_, inside *place) error {
		info, err := inside.Stat()
		if err != nil {
			return err
		}
		unlock := inside.ex.acls.turns.take(dirID{info.Dev, info.Ino})
		defer unlock()
		if err := s.need(inside, acl.Admin); err != nil { // it may have changed in the turn before
			return err
		}
		list, _, err := inside.ex.acls.in(inside.At)
		if err != nil {
			return err
		}
		text := change(list).AppendTo(nil)
		if len(text) > maxACL { // it could not be read again, nor mended by anybody
			return wire.TooBig
		}
		return inside.WritePrivate(aclName, text, 0o644)
	})
}
