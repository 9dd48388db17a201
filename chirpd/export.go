package chirpd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// Export is one directory of several that a Server shows under one root.
type Export struct {
	// Name is how clients see it: "/name", one component.
	Name string
	// Dir is the exported directory.
	Dir string
	// ReadOnly refuses every change below it.
	ReadOnly bool
}

// export is one confined tree.
type export struct {
	name   string // "" for the only one, or "/name"
	root   *confine.Root
	free   int64 // bytes that writers leave free
	acls   aclSource
	allocs allocs
}

// at is the path that clients use for a path within the export.
func (x *export) at(path string) string {
	switch {
	case x.name == "":
		return path
	case path == "/":
		return x.name
	}
	return x.name + path
}

// space is what there is in all and left, as clients are told.
func (x *export) space() (st unix.Statfs_t, err error) {
	err = x.root.Do("/", true, func(a *confine.At) (err error) {
		st, err = a.Statfs()
		return err
	})
	if err == nil {
		x.allocs.limit(&st, "/")
	}
	return st, err
}

// place is an At with the export it lies in. Its paths are those that clients use.
type place struct {
	*confine.At
	ex *export
}

// Path is the object's path.
func (p *place) Path() string { return p.ex.at(p.At.Path()) }

// DirPath is the path of the containing directory.
func (p *place) DirPath() string { return p.ex.at(p.At.DirPath()) }

// enter is Enter of an At.
func (p *place) enter() (*place, error) {
	inside, err := p.At.Enter()
	if err != nil {
		return nil, err
	}
	return &place{inside, p.ex}, nil
}

// do walks to a path and runs op there, as Do of a Root.
func (s *Server) do(path string, follow bool, op func(*place) error) error {
	x, within := s.route(path)
	return x.root.Do(within, follow, func(a *confine.At) error { return op(&place{a, x}) })
}

// walk is Walk of a Root; the caller closes the place.
func (s *Server) walk(path string) (*place, error) {
	x, within := s.route(path)
	a, err := x.root.Walk(within, true)
	if err != nil {
		return nil, err
	}
	return &place{a, x}, nil
}

// route finds the export that a path leads into, and the path within it. What is no
// export's is looked for in the root that shows them.
func (s *Server) route(path string) (*export, string) {
	path = wire.CleanPath(path)
	if s.front == nil {
		return s.exports[0], path
	}
	name, rest := path, "/"
	if i := strings.IndexByte(path[1:], '/'); i >= 0 {
		name, rest = path[:i+1], path[i+1:]
	}
	for _, x := range s.exports {
		if x.name == name {
			return x, rest
		}
	}
	return s.front, path
}

// openExports opens what the configuration names. On an error the caller closes what
// has been opened.
func (s *Server) openExports() error {
	list := s.conf.Exports
	if len(list) == 0 {
		list = []Export{{Dir: s.conf.Root, ReadOnly: s.conf.ReadOnly}}
	}
	shared := &aclFiles{log: s.conf.Log, cache: make(map[aclStamp]acl.ACL)}
	for _, e := range list {
		x, err := s.openExport(e, shared)
		if err != nil {
			return err
		}
		s.exports = append(s.exports, x)
		if err := x.allocs.open(s, x); err != nil {
			return err
		}
	}
	if len(s.conf.Exports) == 0 {
		return nil
	}
	return s.openFront(shared)
}

func (s *Server) openExport(e Export, shared *aclFiles) (*export, error) {
	root, err := confine.Open(e.Dir, confine.Options{ReadOnly: e.ReadOnly || s.conf.ReadOnly})
	if err != nil {
		return nil, err
	}
	fallback, err := acl.Parse([]byte(s.conf.DefaultACL))
	if err == nil && s.conf.DefaultACL == "" {
		fallback, err = builtinACL(root)
	}
	if err != nil {
		root.Close()
		return nil, err
	}
	return &export{name: e.Name, root: root, free: s.conf.FreeSpace,
		acls: aclSource{fallback: fallback, inherit: s.conf.InheritDefaultACL, aclFiles: shared}}, nil
}

// frontName is the directory in the state that stands for the root of several exports.
const frontName = "front"

// openFront makes the root that shows several exports: a directory of our own with an
// empty one for each, which everybody may list and nobody may change.
func (s *Server) openFront(shared *aclFiles) error {
	dir := filepath.Join(s.conf.StateDir, frontName)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for _, x := range s.exports {
		if err := os.MkdirAll(filepath.Join(dir, x.name), 0o755); err != nil {
			return err
		}
	}
	root, err := confine.Open(dir, confine.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	s.front = &export{root: root, acls: aclSource{fallback: acl.ACL{{Subject: "*", Rights: acl.List}}, aclFiles: shared}}
	return nil
}

// shown is what a listing of a directory shows for one of its names: for an export, its
// own root.
func (s *Server) shown(dir *place, e *confine.Entry, long bool) {
	if dir.ex != s.front || !long {
		return
	}
	_ = s.do("/"+string(e.Name), true, func(p *place) (err error) {
		info, err := p.Stat()
		if err == nil {
			e.Info = info
		}
		return err // what cannot be examined is shown as the empty directory
	})
}

// closeExports gives up all trees.
func (s *Server) closeExports() error {
	var failed error
	for _, x := range append(s.exports, s.front) {
		if x == nil {
			continue
		}
		if err := x.root.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// checkExports finds names that could not be shown.
func (c *Config) checkExports() error {
	seen := make(map[string]bool)
	for _, e := range c.Exports {
		name := strings.TrimPrefix(e.Name, "/")
		switch {
		case e.Dir == "":
			return fmt.Errorf("chirpd: export %s names no directory", e.Name)
		case !strings.HasPrefix(e.Name, "/") || name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\n\x00"):
			return fmt.Errorf("chirpd: export name %q is not of the form /name", e.Name)
		case confine.IsPrivate(name):
			return fmt.Errorf("chirpd: export name %q: names that begin with %s are the server's own", e.Name, confine.PrivatePrefix)
		case seen[name]:
			return fmt.Errorf("chirpd: two exports are named %s", e.Name)
		}
		seen[name] = true
	}
	if len(c.Exports) > 0 && c.StateDir == "" {
		return fmt.Errorf("chirpd: several exports need a state directory for the root that shows them")
	}
	return nil
}
