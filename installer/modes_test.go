package installer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// modesArchive has modes that are dangerous or in the way.
func modesArchive(t *testing.T) []byte {
	const dir = tar.TypeDir
	return tarball(t,
		member{name: "./", kind: dir, mode: 0o700},
		member{name: "wide", mode: 0o777}, member{name: "suid", mode: 0o4755},
		member{name: "sgid", mode: 0o2755}, member{name: "none", mode: 0o10000},
		member{name: "sticky/", kind: dir, mode: 0o1777}, member{name: "sgiddir/", kind: dir, mode: 0o6777},
		member{name: "ro/", kind: dir, mode: 0o555}, member{name: "ro/f", mode: 0o400},
		member{name: "ro/below/", kind: dir, mode: 0o311}, member{name: "ro/below/f", mode: 0o444},
		member{name: "implied/dir/f", mode: 0o644},
		member{name: "after/f"}, member{name: "after/", kind: dir, mode: 0o511},
		member{name: "twice/", kind: dir, mode: 0o700}, member{name: "twice/", kind: dir, mode: 0o750},
		member{name: "shut/", kind: dir, mode: 0o10000}, member{name: "shut/f"},
	)
}

var wantModes = map[string]fs.FileMode{
	"wide": 0o750, "suid": 0o750, "sgid": 0o750, "none": 0,
	"sticky": fs.ModeDir | 0o750, "sgiddir": fs.ModeDir | 0o750,
	"ro": fs.ModeDir | 0o550, "ro/f": 0o400, "ro/below": fs.ModeDir | 0o310, "ro/below/f": 0o440,
	"implied": fs.ModeDir | 0o750, "implied/dir": fs.ModeDir | 0o750, "implied/dir/f": 0o640,
	"after": fs.ModeDir | 0o510, "after/f": 0o640, "twice": fs.ModeDir | 0o750,
	"shut": fs.ModeDir, "shut/f": 0o640,
}

// checkModes compares the tree in dir with wantModes; it needs root to look into
// all directories.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	got := map[string]fs.FileMode{}
	for _, name := range listing(t, dir) {
		st, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = st.Mode()
		named := !strings.HasPrefix(name, "implied") || name == "implied/dir/f"
		if named && !st.ModTime().Equal(stamp) {
			t.Errorf("%s: time %v", name, st.ModTime())
		}
	}
	for name, mode := range wantModes {
		if got[name] != mode {
			t.Errorf("%s: %v, want %v", name, got[name], mode)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("unexpected: %v", got)
	}
}

func TestModes(t *testing.T) {
	needRoot(t)
	setUmask(t, 0o027)
	archive := modesArchive(t)
	naive := t.TempDir()
	if err := naiveExtract(tarball(t, member{name: "suid", mode: 0o4755}), naive); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(naive + "/suid"); err != nil || st.Mode()&fs.ModeSetuid == 0 {
		t.Fatalf("the attack does not work on a naive extractor: %v, %v", st, err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o751); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time over the first
		if _, err := Unpack(context.Background(), bytes.NewReader(archive), dir, UnpackOptions{}); err != nil {
			t.Fatal(err)
		}
		checkModes(t, dir)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode() != fs.ModeDir|0o751 {
		t.Errorf("the destination's own mode has changed: %v, %v", st, err)
	}
}

// TestModesAsOrdinaryUser does the same where permissions bind.
func TestModesAsOrdinaryUser(t *testing.T) {
	needRoot(t)
	setUmask(t, 0o027) // the child inherits it
	base := publicDir(t)
	archive, dest := base+"/a.tar", base+"/dest"
	writeFile(t, archive, string(modesArchive(t)))
	if err := errors.Join(os.Chmod(archive, 0o644), os.Mkdir(dest, 0o755), os.Chown(dest, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	exe := publicCopy(t)
	for _, env := range []string{"", noOpenat2Env + "=1", ""} {
		if res := runChild(t, exe, childTask{Unpack: archive, To: dest, Times: 1}, env); res.Err != "" {
			t.Fatal(res.Err)
		}
		checkModes(t, dest)
	}
}

// TestModesAfterFailure: an old directory that had to be opened up is closed again
// when the archive turns out bad.
func TestModesAfterFailure(t *testing.T) {
	needRoot(t)
	base := publicDir(t)
	good := tarball(t, member{name: "ro/", kind: tar.TypeDir, mode: 0o555}, member{name: "ro/f"})
	bad := tarball(t, member{name: "ro/f"}, member{name: "../f"})
	dest := base + "/dest"
	writeFile(t, base+"/good", string(good))
	writeFile(t, base+"/bad", string(bad))
	if err := errors.Join(os.Mkdir(dest, 0o755), os.Chown(dest, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	exe := publicCopy(t)
	if res := runChild(t, exe, childTask{Unpack: base + "/good", To: dest, Times: 1}); res.Err != "" {
		t.Fatal(res.Err)
	}
	res := runChild(t, exe, childTask{Unpack: base + "/bad", To: dest, Times: 1})
	if !strings.Contains(res.Err, `member "../f"`) {
		t.Errorf("error %q", res.Err)
	}
	if st, err := os.Stat(dest + "/ro"); err != nil || st.Mode() != fs.ModeDir|0o555 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
}

func TestStripComponents(t *testing.T) {
	const dir, hard, sym = tar.TypeDir, tar.TypeLink, tar.TypeSymlink
	archive := tarball(t,
		member{name: "p/", kind: dir, mode: 0o700}, member{name: "./p/b", body: "b"},
		member{name: "p/a", kind: hard, link: "p/b"}, member{name: "p//d/./c", kind: hard, link: "./p/b"},
		member{name: "p/s", kind: sym, link: "d/c"}, member{name: "top", body: "skipped"})
	out, sum, err := extract(t, archive, UnpackOptions{StripComponents: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(listing(t, out), " "); got != "a b d d/c s" || sum.Skipped != 2 || sum.Hardlinks != 2 {
		t.Errorf("got %s, %+v", got, sum)
	}
	var st unix.Stat_t
	if err := unix.Lstat(out+"/a", &st); err != nil || st.Nlink != 3 {
		t.Errorf("%d links, %v", st.Nlink, err)
	}
	if _, err := os.Stat(out + "/s"); err != nil {
		t.Error(err)
	}
	for _, hostile := range []member{
		{name: "p/x", kind: hard, link: "secret"}, {name: "p/x", kind: hard, link: "p"},
		{name: "p/x", kind: hard, link: "../p/b"}, {name: "p/x", kind: hard, link: "p/x"},
		{name: "p/x", kind: sym, link: ".."},
	} {
		if _, _, err := extract(t, tarball(t, hostile), UnpackOptions{StripComponents: 1}); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%v: %v", hostile, err)
		}
	}
}

// TestTwice: what is there already is replaced, never written through.
func TestTwice(t *testing.T) {
	const dir, hard, sym = tar.TypeDir, tar.TypeLink, tar.TypeSymlink
	first := tarball(t, member{name: "f", body: "old"}, member{name: "h", kind: hard, link: "f"},
		member{name: "s", kind: sym, link: "f"}, member{name: "d/f"},
		member{name: "d/", kind: dir}, member{name: "l", kind: sym, link: "d"})
	second := tarball(t, member{name: "h", body: "new"}, member{name: "s", body: "new"},
		member{name: "f", kind: sym, link: "h"}, member{name: "l/", kind: dir, mode: 0o700}, member{name: "l/x"})
	out, _, err := extract(t, first, UnpackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	members := func() string { // without the destination itself, whose time is not the archive's
		_, rest, _ := strings.Cut(snapshot(t, out), "\n")
		return rest
	}
	before := members()
	if _, err := Unpack(context.Background(), bytes.NewReader(first), out, UnpackOptions{}); err != nil {
		t.Fatal(err)
	}
	if after := members(); after != before {
		t.Errorf("the second time gives\n%s, the first\n%s", after, before)
	}
	if _, err := Unpack(context.Background(), bytes.NewReader(second), out, UnpackOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(listing(t, out), " "); got != "d d/f f h l l/x s" {
		t.Errorf("got %s", got)
	}
	for _, name := range []string{"h", "s", "f"} {
		if data, err := os.ReadFile(out + "/" + name); string(data) != "new" {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	for _, m := range []member{{name: "d", body: "x"}, {name: "d", kind: sym, link: "f"}, {name: "d", kind: hard, link: "h"}} {
		_, err := Unpack(context.Background(), bytes.NewReader(tarball(t, m)), out, UnpackOptions{})
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "directory is in the way") {
			t.Errorf("%v over a directory: %v", m, err)
		}
	}
}
