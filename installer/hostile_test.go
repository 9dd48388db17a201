package installer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// naiveExtract is what an extractor without any defence does: it believes names,
// targets, types and modes.
func naiveExtract(archive []byte, dir string) error {
	tr := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := naiveMember(h, tr, dir); err != nil {
			return err
		}
	}
}

func naiveMember(h *tar.Header, data io.Reader, dir string) error {
	path := dir + "/" + h.Name
	if h.Name[0] == '/' {
		path = h.Name
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(path, 0o755)
	case tar.TypeSymlink:
		os.Remove(path)
		return os.Symlink(h.Linkname, path)
	case tar.TypeLink:
		os.Remove(path)
		return os.Link(dir+"/"+h.Linkname, path)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		kind := map[byte]uint32{tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK, tar.TypeFifo: unix.S_IFIFO}
		return unix.Mknod(path, kind[h.Typeflag]|uint32(h.Mode), int(unix.Mkdev(uint32(h.Devmajor), uint32(h.Devminor))))
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, data); err != nil {
		return err
	}
	return unix.Fchmod(int(f.Fd()), uint32(h.Mode))
}

// scene is a place for an attack: a destination, and beside it a directory with a
// file that the archive must not touch.
type scene struct{ base, dest, outside string }

func newScene(t *testing.T) scene {
	base := t.TempDir()
	s := scene{base, filepath.Join(base, "dest"), filepath.Join(base, "outside")}
	if err := os.Mkdir(s.dest, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, s.outside+"/secret", "secret")
	return s
}

// attack is a hostile archive, or several for one place.
type attack struct {
	name     string
	archives func(s scene) [][]member
	// works reports that the naive extractor fell for it. Default: something
	// outside has changed.
	works func(s scene) bool
	want  error  // default ErrUnsafe
	text  string // in the message
	root  bool   // the naive extractor must be root
}

func one(m ...member) func(scene) [][]member {
	return func(scene) [][]member { return [][]member{m} }
}

func attacks() []attack {
	const sym, hard = tar.TypeSymlink, tar.TypeLink
	evil := func(name string) member { return member{name: name, body: "evil"} }
	is := func(name string, mode os.FileMode) func(scene) bool {
		return func(s scene) bool {
			st, err := os.Lstat(s.dest + "/" + name)
			return err == nil && st.Mode()&mode == mode
		}
	}
	leadsOut := func(name string) func(scene) bool {
		return func(s scene) bool {
			got, err := filepath.EvalSymlinks(s.dest + "/" + name)
			return err == nil && !strings.HasPrefix(got, s.dest+"/")
		}
	}
	return []attack{
		{name: "absolute name", text: "absolute", archives: func(s scene) [][]member {
			return [][]member{{evil(s.outside + "/f")}}
		}},
		{name: "dotdot", text: `".."`, archives: one(evil("../outside/f"))},
		{name: "dotdot inside", text: `".."`, archives: one(member{name: "a/x"}, evil("a/../../outside/f"))},
		{name: "dotdot directory", text: `".."`, archives: one(member{name: "../outside/d/", kind: tar.TypeDir})},
		{name: "absolute link then file", text: "absolute", archives: func(s scene) [][]member {
			return [][]member{{{name: "m", kind: sym, link: s.outside + "/m"}, evil("m")}}
		}},
		{name: "absolute link as parent", text: "absolute", archives: func(s scene) [][]member {
			return [][]member{{{name: "d", kind: sym, link: s.outside}, evil("d/f")}}
		}},
		{name: "relative link as parent", text: "outside", archives: one(
			member{name: "d", kind: sym, link: "../outside"}, evil("d/f"))},
		{name: "relative link from below", text: "outside", archives: one(
			member{name: "a/b/d", kind: sym, link: "../x/../../../outside"}, member{name: "a/x/f"}, evil("a/b/d/f"))},
		{name: "chained links as parent", archives: one(
			member{name: "x/y/top", kind: sym, link: "../.."},
			member{name: "x/y/d", kind: sym, link: "top/../outside"}, evil("x/y/d/f")),
			text: "symbolic link"},
		{name: "chained links", text: `".." does not follow a directory`, archives: one(
			member{name: "x/y/d", kind: sym, link: "top/../outside"},
			member{name: "x/y/top", kind: sym, link: "../.."}),
			works: leadsOut("x/y/d")},
		{name: "link in the place of an empty directory", archives: func(scene) [][]member {
			return [][]member{
				{{name: "s/", kind: tar.TypeDir}, {name: "outside/", kind: tar.TypeDir}, {name: "d", kind: sym, link: "s/../outside"}},
				{{name: "s", kind: sym, link: "."}},
			}
		}, works: leadsOut("d"), want: unix.EEXIST, text: "a directory is in the way"},
		{name: "second archive through a link of the first", archives: func(s scene) [][]member {
			return [][]member{
				{{name: "x/y/top", kind: sym, link: "../.."}, {name: "x/y/d", kind: sym, link: "top/../outside"}},
				{evil("x/y/d/f")},
			}
		}},
		{name: "hard link outside", text: `".."`, archives: one(
			member{name: "h", kind: hard, link: "../outside/secret"}, evil("h"))},
		{name: "hard link through a link", text: "outside", archives: one(
			member{name: "d", kind: sym, link: "../outside"}, member{name: "h", kind: hard, link: "d/secret"}, evil("h"))},
		{name: "hard link to a link", text: "not a regular file", archives: one(
			member{name: "f"}, member{name: "s", kind: sym, link: "f"}, member{name: "h", kind: hard, link: "s"}),
			works: is("h", os.ModeSymlink)},
		{name: "character device", text: "device", root: true,
			archives: one(member{name: "null", kind: tar.TypeChar}), works: is("null", os.ModeCharDevice)},
		{name: "block device", text: "device", root: true,
			archives: one(member{name: "loop", kind: tar.TypeBlock}), works: is("loop", os.ModeDevice)},
		{name: "FIFO", text: "FIFO", archives: one(member{name: "p", kind: tar.TypeFifo}), works: is("p", os.ModeNamedPipe)},
	}
}

func TestHostileArchives(t *testing.T) {
	for _, a := range attacks() {
		t.Run(a.name, func(t *testing.T) {
			if a.root {
				needRoot(t)
			}
			proveAttack(t, a)
			s := newScene(t)
			before := snapshot(t, s.outside)
			var err error
			for _, members := range a.archives(s) {
				if err == nil {
					_, err = Unpack(context.Background(), bytes.NewReader(tarball(t, members...)), s.dest, UnpackOptions{})
				}
			}
			if a.want == nil {
				a.want = ErrUnsafe
			}
			if !errors.Is(err, a.want) || !strings.Contains(err.Error(), a.text) {
				t.Errorf("error %v, want %v with %q", err, a.want, a.text)
			}
			var ue *UnpackError
			if !errors.As(err, &ue) || ue.Member == "" {
				t.Errorf("%v names no member", err)
			}
			if after := snapshot(t, s.outside); after != before {
				t.Errorf("outside has changed:\n%s\nwas\n%s", after, before)
			}
			if a.works != nil && a.works(s) {
				t.Error("the attack works")
			}
		})
	}
}

// proveAttack fails the test if an extractor without defence withstands.
func proveAttack(t *testing.T, a attack) {
	t.Helper()
	s := newScene(t)
	before := snapshot(t, s.outside)
	for _, members := range a.archives(s) {
		if err := naiveExtract(tarball(t, members...), s.dest); err != nil {
			t.Fatalf("naive extractor: %v", err)
		}
	}
	worked := snapshot(t, s.outside) != before
	if a.works != nil {
		worked = a.works(s)
	}
	if !worked {
		t.Fatal("the attack does not even work on a naive extractor")
	}
}

func TestHostileArchivesLeaveNothingUnderTheFinalName(t *testing.T) {
	for _, a := range attacks() {
		s := newScene(t)
		archives := a.archives(s)
		if len(archives) > 1 || a.want != nil {
			continue
		}
		archive := filepath.Join(s.base, "a.tar")
		if err := os.WriteFile(archive, tarball(t, archives[0]...), 0o644); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, s.outside)
		_, err := UnpackTo(context.Background(), archive, s.base+"/final", UnpackOptions{})
		if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), archive) {
			t.Errorf("%s: error %v", a.name, err)
		}
		if got := strings.Join(listing(t, s.base), " "); got != "a.tar dest outside outside/secret" {
			t.Errorf("%s: left %s", a.name, got)
		}
		if snapshot(t, s.outside) != before {
			t.Errorf("%s: outside has changed", a.name)
		}
	}
}
