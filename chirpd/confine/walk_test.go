package confine

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWalk(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("a/b/f", "f")
		tr.write("top", "top")
		tr.mkdir("x/y")
		tr.symlink("/a/b", "abs")
		tr.symlink("../a", "x/rel")
		tr.symlink("b/f", "a/file")
		tr.symlink("missing", "a/dangling")
		tr.symlink("/a/none/f", "nowhere")
		tr.symlink("/", "rootlink")
		tr.symlink("../../../../../../../top", "x/y/high")
		tr.symlink("loop2", "loop1")
		tr.symlink("loop1", "loop2")
		tr.symlink("rel/../a/./b//", "x/messy")
		for _, c := range []struct {
			path         string
			follow       bool
			want         string
			dir, errText error
		}{
			{path: "", want: "/"},
			{path: "/", want: "/"},
			{path: "/.", want: "/"},
			{path: "/..", want: "/"},
			{path: "../../..", want: "/"},
			{path: "a", want: "/a"},
			{path: "/a/b/f", want: "/a/b/f"},
			{path: "//a/./b///f/", want: "/a/b/f"},
			{path: "/a/b/..", want: "/a"},
			{path: "/a/../x/y", want: "/x/y"},
			{path: "/../../top", want: "/top"},
			{path: "/a/new", follow: true, want: "/a/new"},
			{path: "/abs/f", follow: true, want: "/a/b/f"},
			{path: "/abs", follow: true, want: "/a/b"},
			{path: "/abs", want: "/abs"},
			{path: "/abs/..", want: "/a"},
			{path: "/abs/../file", follow: true, want: "/a/b/f"},
			{path: "/x/rel/b/f", want: "/a/b/f"},
			{path: "/x/rel/../top", want: "/top"},
			{path: "/a/file", follow: true, want: "/a/b/f"},
			{path: "/a/dangling", follow: true, want: "/a/missing"},
			{path: "/a/dangling", want: "/a/dangling"},
			{path: "/rootlink", follow: true, want: "/"},
			{path: "/rootlink/rootlink/a/b", want: "/a/b"},
			{path: "/x/y/high", follow: true, want: "/top"},
			{path: "/x/messy", follow: true, want: "/a/b"},
			{path: "/loop1", want: "/loop1"},
			{path: "/loop1", follow: true, errText: unix.ELOOP},
			{path: "/loop1/f", errText: unix.ELOOP},
			{path: "/nowhere", follow: true, errText: unix.ENOENT},
			{path: "/none/f", errText: unix.ENOENT},
			{path: "/top/f", errText: unix.ENOTDIR},
			{path: "/top/..", errText: unix.ENOTDIR},
			{path: "/a/dangling/f", errText: unix.ENOENT},
			{path: "/a\x00b/c", errText: unix.EINVAL},
			{path: "/" + strings.Repeat("n", 256) + "/f", errText: unix.ENAMETOOLONG},
		} {
			a, err := tr.Walk(c.path, c.follow)
			if c.errText != nil {
				wantErr(tr, c.path, err, c.errText)
				continue
			}
			if err != nil {
				tr.Errorf("%q: %v", c.path, err)
				continue
			}
			if got := a.Path(); got != c.want || a.IsRoot() != (c.want == "/") {
				tr.Errorf("%q leads to %q, want %q", c.path, got, c.want)
			}
			a.Close()
			a.Close()
		}
	})
}

func TestWalkFollowsAtMostFortyLinks(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("l0", "end")
		for i := 1; i <= 41; i++ {
			tr.symlink("l"+itoa(i-1), "l"+itoa(i))
		}
		if got, err := tr.get("l40"); got != "end" || err != nil {
			tr.Errorf("40 links: %q, %v", got, err)
		}
		_, err := tr.get("l41")
		wantErr(tr, "41 links", err, unix.ELOOP)
	})
}

// A path that is longer than the kernel takes at once.
func TestWalkLongPath(t *testing.T) {
	suite(t, func(tr *tree) {
		name := strings.Repeat("d", 200)
		path := ""
		for range 30 {
			must(tr, tr.Do(path+"/"+name, true, func(a *At) error { return a.Mkdir(0o755) }))
			path += "/" + name
		}
		a := tr.at(path, true)
		info, err := a.Stat()
		if err != nil || !info.IsDir() || a.Path() != path {
			tr.Errorf("%v, %v, %d bytes", info, err, len(a.Path()))
		}
		must(tr, tr.at("/"+name, false).RemoveAll(tr.Context(), nil))
	})
}

func TestPrivateNamesAreRefused(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("d/.__acl", "unix:root rwlda\n")
		tr.write(".__tickets/x", "secret")
		tr.symlink("d/.__acl", "link")
		tr.symlink("link", "link2")
		tr.symlink("../.__tickets", "d/dirlink")
		tr.symlink(".__new", "dangling")
		for _, path := range []string{
			"/d/.__acl", "d/.__acl/", "/d/../d/.__acl", "/d/.__none", "/.__", "/.__tickets/x",
			"/.__tickets/../d", "/link", "/link2", "/d/dirlink/x", "/d/dirlink/../d", "/dangling",
		} {
			_, err := tr.Walk(path, true)
			wantErr(tr, path, err, ErrPrivate)
			wantErr(tr, path, err, unix.EACCES)
			wantErr(tr, path, err, fs.ErrPermission)
		}
		// The link itself is an ordinary name.
		if target, err := tr.at("/link", false).Readlink(); target != "d/.__acl" || err != nil {
			tr.Errorf("readlink: %q, %v", target, err)
		}
		for _, path := range []string{"/d/._acl", "/d/__acl", "/d/.acl", "/d/x.__acl"} {
			tr.at(path, true)
		}
	})
}

func TestErrorsCarryErrnoAndVirtualPath(t *testing.T) {
	tr := newTree(t, Options{})
	tr.mkdir("a")
	_, err := tr.at("/a/none", true).Stat()
	var pe *fs.PathError
	var errno syscall.Errno
	if !errors.As(err, &pe) || pe.Path != "/a/none" || !errors.As(err, &errno) || errno != unix.ENOENT {
		t.Errorf("%v", err)
	}
	err = tr.at("/a/none", false).Rename(tr.at("/b", false))
	var le *os.LinkError
	if !errors.As(err, &le) || le.Old != "/a/none" || le.New != "/b" || !errors.Is(err, unix.ENOENT) {
		t.Errorf("%v", err)
	}
	for _, own := range []error{ErrChanged, ErrPrivate, ErrPipe, ErrSpecial, ErrNoProc} {
		if !errors.As(own, &errno) {
			t.Errorf("%v has no errno", own)
		}
	}
	if strings.Contains(err.Error(), tr.dir) {
		t.Errorf("%v shows where the export lies", err)
	}
}

func TestCloseWhileInUse(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("d/f", "f")
	root, err := Open(tr.dir, Options{})
	must(t, err)
	a, err := root.Walk("/d/f", true)
	must(t, err)
	must(t, root.Close())
	_, err = root.Walk("/d/f", true)
	wantErr(t, "walk", err, fs.ErrClosed)
	wantErr(t, "close", root.Close(), fs.ErrClosed)
	if _, err := a.Stat(); err != nil {
		t.Error(err)
	}
	a.Close()
	if root.refs.Load() != 0 {
		t.Error("the root is still in use")
	}
}

func TestNearest(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write(".__acl", "root")
		tr.write("a/.__acl", "a")
		tr.mkdir("a/b/c/d", "x/y")
		for _, c := range []struct{ path, dir, want string }{
			{"/a/b/c/d/f", "/a", "a"},
			{"/a/b/f", "/a", "a"},
			{"/a/f", "/", "root"}, // above the directory itself
			{"/x/y/f", "/", "root"},
		} {
			found, err := tr.at(c.path, true).Nearest(".__acl")
			must(tr, err)
			data, _, err := found.ReadPrivate(".__acl", 100)
			if found.Path() != c.dir || string(data) != c.want || err != nil {
				tr.Errorf("%s: %s with %q, %v; want %s", c.path, found.Path(), data, err, c.dir)
			}
			found.Close()
		}
		_, err := tr.at("/f", true).Nearest(".__acl")
		wantErr(tr, "above the root", err, unix.ENOENT)
		_, err = tr.at("/a/b/f", true).Nearest(".__none")
		wantErr(tr, "no such file", err, unix.ENOENT)
		_, err = tr.at("/a/b/f", true).Nearest("f")
		wantErr(tr, "a name that is not private", err, unix.EINVAL)
	})
}

// A directory that was moved out of the export has nothing above it.
func TestNearestStaysInside(t *testing.T) {
	tr := newTree(t, Options{})
	tr.mkdir("a/b")
	must(t, os.WriteFile(tr.outside+"/.__acl", []byte("unix:* rwlda\n"), 0o644))
	a := tr.at("/a/b/f", true)
	must(t, os.Rename(tr.real("a"), tr.outside+"/a"))
	_, err := a.Nearest(".__acl")
	wantErr(t, "moved outside", err, ErrChanged)
}

func TestEnter(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("a/b/.__acl", "b")
		tr.symlink("b", "a/link")
		tr.write("a/f", "f")
		inside, err := tr.at("/a/b", true).Enter()
		must(tr, err)
		defer inside.Close()
		// What was entered stays, whatever has its name afterwards.
		must(tr, os.Rename(tr.real("a/b"), tr.real("gone")))
		data, _, err := inside.ReadPrivate(".__acl", 10)
		if string(data) != "b" || err != nil || inside.Path() != "/a/b" || inside.Name() != "." {
			tr.Errorf("%q, %v, %s", data, err, inside.Path())
		}
		_, err = tr.at("/a/link", false).Enter()
		wantErr(tr, "a link", err, ErrChanged)
		_, err = tr.at("/a/f", false).Enter()
		wantErr(tr, "a file", err, unix.ENOTDIR)
		_, err = tr.at("/a/none", false).Enter()
		wantErr(tr, "nothing", err, unix.ENOENT)
		root, err := tr.at("/", false).Enter()
		must(tr, err)
		if !root.IsRoot() {
			tr.Error("the root's inside is not the root")
		}
		root.Close()
	})
}
