package chirpd

import (
	"strings"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/wire"
)

// maxAttr is Linux's bound for the value of an attribute, in bytes.
const maxAttr = 64 << 10

func (s *session) getxattr(r *wire.Getxattr) error { return s.getAttr(r.Path, true, r.Name) }

func (s *session) lgetxattr(r *wire.Lgetxattr) error { return s.getAttr(r.Path, false, r.Name) }

func (s *session) getAttr(path string, follow bool, name string) error {
	var value []byte
	err := s.object(path, follow, acl.Read, func(f *found) (err error) {
		value, err = f.Getxattr(name)
		return err
	})
	if err != nil {
		return err
	}
	return s.replyText(value)
}

func (s *session) fgetxattr(r *wire.Fgetxattr) error {
	f, err := s.files.getFor(r.FD, acl.Read)
	if err != nil {
		return err
	}
	value, err := f.Getxattr(r.Name)
	if err != nil {
		return err
	}
	return s.replyText(value)
}

func (s *session) listxattr(r *wire.Listxattr) error { return s.listAttrs(r.Path, true) }

func (s *session) llistxattr(r *wire.Llistxattr) error { return s.listAttrs(r.Path, false) }

func (s *session) listAttrs(path string, follow bool) error {
	var names []string
	err := s.object(path, follow, acl.Read, func(f *found) (err error) {
		names, err = f.Listxattr()
		return err
	})
	if err != nil {
		return err
	}
	return s.replyNames(names)
}

func (s *session) flistxattr(r *wire.Flistxattr) error {
	f, err := s.files.getFor(r.FD, acl.Read)
	if err != nil {
		return err
	}
	names, err := f.Listxattr()
	if err != nil {
		return err
	}
	return s.replyNames(names)
}

// replyNames sends names of attributes, each ended by NUL.
func (s *session) replyNames(names []string) error {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(name)
		text.WriteByte(0)
	}
	return s.replyText([]byte(text.String()))
}

func (s *session) setxattr(r *wire.Setxattr) error {
	return s.setAttr(r.Path, true, r.Name, r.Flags)
}

func (s *session) lsetxattr(r *wire.Lsetxattr) error {
	return s.setAttr(r.Path, false, r.Name, r.Flags)
}

func (s *session) setAttr(path string, follow bool, name string, flags int64) error {
	value, err := s.smallBody(maxAttr)
	if err != nil {
		return err
	}
	return s.object(path, follow, acl.Write, func(f *found) error {
		return f.Setxattr(name, value, int(flags))
	})
}

func (s *session) fsetxattr(r *wire.Fsetxattr) error {
	value, err := s.smallBody(maxAttr)
	if err != nil {
		return err
	}
	f, err := s.files.getFor(r.FD, acl.Write)
	if err != nil {
		return err
	}
	return f.Setxattr(r.Name, value, int(r.Flags))
}

// smallBody takes all of the request's data, at most limit bytes of it.
func (s *session) smallBody(limit int64) ([]byte, error) {
	if s.body > limit {
		return nil, wire.TooBig
	}
	p := make([]byte, s.body)
	return p, s.takeBody(p)
}

func (s *session) removexattr(r *wire.Removexattr) error { return s.removeAttr(r.Path, true, r.Name) }

func (s *session) lremovexattr(r *wire.Lremovexattr) error {
	return s.removeAttr(r.Path, false, r.Name)
}

func (s *session) removeAttr(path string, follow bool, name string) error {
	return s.object(path, follow, acl.Write, func(f *found) error { return f.Removexattr(name) })
}

func (s *session) fremovexattr(r *wire.Fremovexattr) error {
	f, err := s.files.getFor(r.FD, acl.Write)
	if err != nil {
		return err
	}
	return f.Removexattr(r.Name)
}
