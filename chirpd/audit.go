package chirpd

import (
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// nobodyKnown is the owner of a directory that has no ACL of its own.
const nobodyKnown = "unknown"

// share is what one owner has.
type share struct{ files, dirs, bytes int64 }

// audit counts files, directories and bytes below a directory by owner: the first
// subject of a directory's own ACL. It needs the right a where it begins; links are not
// followed.
func (s *session) audit(r *wire.Audit) error {
	owners := make(map[string]*share)
	if err := s.auditDir(wire.CleanPath(r.Path), true, 0, owners); err != nil {
		return err
	}
	names := make([]string, 0, len(owners))
	for name := range owners {
		names = append(names, name)
	}
	slices.Sort(names)
	s.reply(int64(len(names)))
	for _, name := range names {
		o := owners[name]
		s.out.write(fmt.Appendf(nil, "%s %d %d %d\n", name, o.files, o.dirs, o.bytes))
	}
	return nil
}

func (s *session) auditDir(dir string, first bool, depth int, owners map[string]*share) error {
	if depth > maxDepth {
		return unix.ENAMETOOLONG
	}
	want := acl.Rights(0)
	if first {
		want = acl.Admin
	}
	var down []string
	err := s.directory(dir, want, func(_, inside *place) error {
		if err := s.maskAllows(inside, acl.Admin); err != nil {
			return err
		}
		list, _, err := inside.ex.acls.own(inside.At)
		if err != nil {
			return err
		}
		owner := nobodyKnown
		if len(list) > 0 {
			owner = list[0].Subject
		}
		o := owners[owner]
		if o == nil {
			o = new(share)
			owners[owner] = o
		}
		o.dirs++
		return inside.ReadDir(true, func(e *confine.Entry) error {
			if e.Info.IsDir() {
				down = append(down, string(e.Name))
				return s.srv.ctx.Err()
			}
			o.files++
			o.bytes += e.Info.Size
			return s.srv.ctx.Err()
		})
	})
	if err != nil && !first && isGone(err) {
		return nil
	}
	for _, name := range down {
		if err == nil {
			err = s.auditDir(join(dir, name), false, depth+1, owners)
		}
	}
	return err
}

// isGone says whether a directory vanished, or became something else.
func isGone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}
