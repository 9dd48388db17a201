package chirpd

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// This file is where rights are checked. Each handler reaches files through one of
// object, entry, directory and target; which one says where the rights count:
//
//	object     what a path leads to: in the directory that holds it, or, for a
//	           directory, in itself
//	entry      a name, to be made or removed: in the directory that holds it
//	target     a file to be written, which may be new: where a link leads, in the
//	           directory that holds it
//	directory  a directory: in itself

// deniedError is a right that the client lacks.
type deniedError struct {
	want acl.Rights
	path string
}

func (e *deniedError) Error() string {
	return fmt.Sprintf("needs the right %v for %s", e.want, e.path)
}

func (e *deniedError) Unwrap() error { return wire.NotAuthorized }

// rights is what the client may do in a's containing directory.
func (s *session) rights(a *place) (acl.Rights, error) {
	list, _, err := a.ex.acls.in(a.At)
	if err != nil {
		return 0, err
	}
	return s.rightsBy(list, a), nil
}

// rightsBy is what an ACL gives the client in a's containing directory.
func (s *session) rightsBy(list acl.ACL, a *place) acl.Rights {
	r := list.ForMember(s.who, s.member)
	if who := s.srv.conf.Superuser; who != "" && who == s.who {
		r = acl.Full
	}
	return s.masked(r, a.DirPath())
}

// need fails unless the client has all the rights of want in a's containing directory.
func (s *session) need(a *place, want acl.Rights) error {
	r, err := s.rights(a)
	if err == nil && !r.Has(want) {
		err = &deniedError{want, a.Path()}
	}
	return err
}

// found is what a path led to.
type found struct {
	*place               // of the object; inside it when it is a directory
	info    confine.Info // what it is
	missing error        // it is not there
	rights  acl.Rights   // the client's, for the object
}

// find runs do on what path leads to, there or not, whatever the client's rights.
func (s *session) find(path string, follow bool, do func(*found) error) error {
	path = wire.CleanPath(path)
	if done, err := s.findNear(path, follow, do); done {
		return err
	}
	return s.srv.do(path, follow, func(a *place) error {
		f := found{place: a}
		f.info, f.missing = a.Stat()
		if f.missing != nil && !errors.Is(f.missing, unix.ENOENT) {
			return f.missing
		}
		if f.info.IsDir() {
			inside, err := a.enter()
			if err != nil {
				return err
			}
			defer inside.Close()
			f.place = inside
		}
		list, _, err := f.ex.acls.in(f.At)
		if err != nil {
			return err
		}
		f.rights = s.rightsBy(list, f.place)
		err = do(&f)
		if f.place == a && err == nil {
			s.keepNear(path, a, list)
		}
		return err
	})
}

// object runs do on what path leads to, if the client has want for it.
func (s *session) object(path string, follow bool, want acl.Rights, do func(*found) error) error {
	return s.find(path, follow, func(f *found) error {
		if !f.rights.Has(want) {
			return &deniedError{want, f.Path()}
		}
		if f.missing != nil {
			return f.missing
		}
		return do(f)
	})
}

// entry runs do on a name, if the client has want in the directory that holds it.
func (s *session) entry(path string, want acl.Rights, do func(*place) error) error {
	return s.srv.do(path, false, func(a *place) error {
		if err := s.need(a, want); err != nil {
			return err
		}
		return do(a)
	})
}

// target runs do where a path leads, with the client's rights in the directory there.
// Nothing need be there.
func (s *session) target(path string, do func(*place, acl.Rights) error) error {
	return s.srv.do(path, true, func(a *place) error {
		r, err := s.rights(a)
		if err != nil {
			return err
		}
		return do(a, r)
	})
}

// directory runs do inside a directory, if the client has want in it. at is where it
// lies, inside has its private files.
func (s *session) directory(path string, want acl.Rights, do func(at, inside *place) error) error {
	return s.srv.do(path, true, func(a *place) error {
		inside, err := a.enter()
		if err != nil {
			return err
		}
		defer inside.Close()
		if err := s.need(inside, want); err != nil {
			return err
		}
		return do(a, inside)
	})
}
