package chirpd

import (
	"strings"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/wire"
)

// near is the directory that the last request looked into, held open, with the ACL that
// held there: for the requests that were read together with it. To everybody outside they
// all come at the same instant, as none of them is answered before the directory is let
// go: when replies are sent, before more is read, and before the session's own next
// request that is not one of those in keepsNear. The ACL was read through this very
// descriptor, and what is looked at is reached through it.
type near struct {
	path    string // as the client named it, clean
	dir     place  // inside it; no At when there is none
	list    acl.ACL
	flushes int // of the output, when it was found
}

// keepsNear says whether a request changes nothing that near holds.
func keepsNear(r wire.Request) bool {
	switch r.(type) {
	case *wire.StatPath, *wire.Lstat, *wire.Access, *wire.Fstat, *wire.Pread:
		return true
	}
	return false
}

// dropNear lets the directory go.
func (s *session) dropNear() {
	if s.near.dir.At != nil {
		s.near.dir.Close()
		s.near = near{}
	}
}

// split divides a clean path into its directory and its last name, none for the root.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 1)], path[i+1:]
}

// keepNear keeps the directory that a lies in, if more requests have been read, and a was
// reached without a link.
func (s *session) keepNear(path string, a *place, list acl.ACL) {
	if !s.looking || s.in.Buffered() == 0 {
		return
	}
	dir, name := split(path)
	if name == "" || a.DirPath() != dir || a.Name() != name {
		return
	}
	s.dropNear()
	s.near = near{dir, place{a.Retain(), a.ex}, list, s.out.flushes}
}

// findNear is find for what lies in the directory at hand, if it is no link to be
// followed and no directory; otherwise it does nothing and says so.
func (s *session) findNear(path string, follow bool, do func(*found) error) (done bool, err error) {
	if s.near.dir.At == nil {
		return false, nil
	}
	dir, name := split(path)
	if dir != s.near.path || s.near.flushes != s.out.flushes {
		return false, nil
	}
	a, err := s.near.dir.Lend(name)
	if err != nil {
		return false, nil // the long way says why
	}
	f := found{place: &place{a, s.near.dir.ex}}
	f.info, err = a.Stat()
	if err != nil || f.info.IsDir() || follow && f.info.IsLink() {
		return false, nil
	}
	f.rights = s.rightsBy(s.near.list, f.place)
	return true, do(&f)
}
