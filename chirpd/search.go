package chirpd

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// maxDepth bounds how deep a walk through a tree goes.
const maxDepth = 256

// errFound ends a search that has what it wants.
var errFound = errors.New("found")

// search tells what lies below directories and matches one of some patterns, links to
// directories followed. What cannot be listed is told in a line of its own, with the
// errno, and the search goes on.
func (s *session) search(r *wire.Search) error {
	q := query{s: s, flags: wire.SearchFlags(r.Flags)}
	for _, pattern := range strings.Split(r.Pattern, "|") {
		if _, err := path.Match(pattern, ""); err != nil {
			return &wire.Error{Op: r.Command(), Path: r.Pattern, Code: wire.InvalidRequest, Err: err}
		}
		q.patterns = append(q.patterns, strings.ReplaceAll(pattern, "[!", "[^"))
	}
	s.reply(0)
	for _, root := range strings.Split(r.Path, "|") {
		root = wire.CleanPath(root)
		shown := root
		if q.flags&wire.SearchIncludeRoot == 0 || root == "/" {
			shown = ""
		}
		if err := q.below(root, shown, "", nil); err != nil && err != errFound {
			return err
		}
		if q.found && q.flags&wire.SearchStopAtFirst != 0 {
			break
		}
	}
	s.out.write([]byte("\n"))
	return nil
}

// query is a search under way.
type query struct {
	s        *session
	patterns []string
	flags    wire.SearchFlags
	found    bool
}

// below searches the directory dir, which lies at rel below the search's root; shown is
// what stands before rel in replies, and trail the directories above, so that a link to
// one of them ends there.
func (q *query) below(dir, shown, rel string, trail []dirID) error {
	var down []string
	err := q.s.directory(dir, acl.List, func(_, inside *place) error {
		self, err := inside.Stat()
		if err != nil {
			return err
		}
		id := dirID{self.Dev, self.Ino}
		for _, above := range trail {
			if id == above {
				return nil
			}
		}
		trail = append(trail[:len(trail):len(trail)], id)
		return inside.ReadDir(true, func(e *confine.Entry) error {
			name := rel + "/" + string(e.Name)
			if e.Info.IsDir() || e.Info.IsLink() {
				down = append(down, string(e.Name))
			}
			return q.consider(dir, shown, name, e)
		})
	})
	if err != nil && !q.isOver(err) {
		q.cannot(dir, err, rel != "")
	} else if err != nil {
		return err
	}
	for _, name := range down {
		if len(trail) >= maxDepth {
			q.cannot(join(dir, name), unix.ENAMETOOLONG, false)
			continue
		}
		if err := q.below(join(dir, name), shown, rel+"/"+name, trail); err != nil {
			return err
		}
	}
	return nil
}

// isOver says whether an error ends the whole search.
func (q *query) isOver(err error) bool {
	return err == errFound || q.s.out.err != nil || q.s.srv.ctx.Err() != nil
}

// consider tells of an entry that matches. name is its path below the search's root.
func (q *query) consider(dir, shown, name string, e *confine.Entry) error {
	if err := errors.Join(q.s.out.err, q.s.srv.ctx.Err()); err != nil {
		return err
	}
	if !q.matches(name) || strings.Contains(name, "\n") || !q.usable(join(dir, string(e.Name))) {
		return nil
	}
	q.s.out.write([]byte("0:" + shown + name + ":"))
	if q.flags&wire.SearchMetadata != 0 {
		q.s.out.write(bytes.TrimSuffix(statOf(&e.Info).Append(nil), []byte("\n")))
	}
	q.s.out.write([]byte(":\n"))
	q.found = true
	if q.flags&wire.SearchStopAtFirst != 0 {
		return errFound
	}
	return nil
}

// matches compares a path below the search's root with the patterns. One that begins
// with a slash stands for the whole path, any other for its end as well.
func (q *query) matches(name string) bool {
	for _, pattern := range q.patterns {
		for rest, more := name, true; more; {
			if ok, _ := path.Match(pattern, rest); ok { // patterns were checked
				return true
			}
			if _, rest, more = strings.Cut(rest, "/"); strings.HasPrefix(pattern, "/") {
				break
			}
		}
	}
	return false
}

// usable asks the system what the request's flags ask.
func (q *query) usable(path string) bool {
	var mode uint32
	for flag, bit := range map[wire.SearchFlags]uint32{
		wire.SearchReadable: unix.R_OK, wire.SearchWritable: unix.W_OK, wire.SearchExecutable: unix.X_OK,
	} {
		if q.flags&flag != 0 {
			mode |= bit
		}
	}
	return mode == 0 || q.s.find(path, true, func(f *found) error {
		if f.missing != nil {
			return f.missing
		}
		return f.Access(mode)
	}) == nil
}

// cannot tells that a directory could not be searched. Links to what is none, and what
// has vanished since it was seen, are no news.
func (q *query) cannot(dir string, err error, seen bool) {
	if seen && (errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOENT)) || strings.Contains(dir, "\n") {
		return
	}
	errno := unix.EPERM // as in the real server
	if !errors.Is(err, wire.NotAuthorized) && !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	q.s.out.write(fmt.Appendf(nil, "%d:1:%s:\n", errno, dir))
}

// join is the path of a name in a directory.
func join(dir, name string) string {
	if dir == "/" {
		return dir + name
	}
	return dir + "/" + name
}
