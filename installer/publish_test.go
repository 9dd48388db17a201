package installer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPublish(t *testing.T) {
	for _, c := range []struct {
		name               string
		tmp, final, result string // content; "/" at the end for a directory
		replace            bool
		want               error
	}{
		{name: "file", tmp: "new", result: "new"},
		{name: "directory", tmp: "new/", result: "new/"},
		{name: "file over file", tmp: "new", final: "old", want: fs.ErrExist},
		{name: "directory over directory", tmp: "new/", final: "old/", want: fs.ErrExist},
		{name: "file for file", tmp: "new", final: "old", replace: true, result: "new"},
		{name: "directory for directory", tmp: "new/", final: "old/", replace: true, result: "new/"},
		{name: "directory for nothing", tmp: "new/", replace: true, result: "new/"},
		{name: "directory for file", tmp: "new/", final: "old", replace: true, want: syscall.ENOTDIR},
		{name: "nothing", want: fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			makeThing(t, dir+"/tmp", c.tmp)
			makeThing(t, dir+"/final", c.final)
			before := snapshot(t, dir)
			f := Publish
			if c.replace {
				f = Replace
			}
			err := f(dir+"/tmp", dir+"/final")
			if !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err != nil {
				if after := snapshot(t, dir); after != before {
					t.Errorf("changed:\n%s\nwas\n%s", after, before)
				}
				return
			}
			want := "final"
			if strings.HasSuffix(c.result, "/") {
				want = "final final/" + strings.TrimSuffix(c.result, "/")
			}
			if got := strings.Join(listing(t, dir), " "); got != want {
				t.Errorf("there is %s", got)
			}
		})
	}
}

// makeThing makes a file with that content, or a directory with a file of that
// name.
func makeThing(t *testing.T, path, content string) {
	t.Helper()
	switch name, isDir := strings.CutSuffix(content, "/"); {
	case isDir:
		writeFile(t, path+"/"+name, "x")
	case content != "":
		writeFile(t, path, content)
	}
}

func TestUnpackTo(t *testing.T) {
	setUmask(t, 0o027)
	dir := tempDir(t)
	archive := dir + "/a.tar"
	writeFile(t, archive, string(tarball(t, member{name: "ro/", kind: '5', mode: 0o555}, member{name: "ro/f", body: "x"})))
	final := dir + "/final"
	for range 2 {
		if _, err := UnpackTo(t.Context(), archive, final, UnpackOptions{Replace: true}); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(final); err != nil || st.Mode() != fs.ModeDir|0o750 {
			t.Errorf("%v, %v", st, err)
		}
		if got := strings.Join(listing(t, dir), " "); got != "a.tar final final/ro final/ro/f" {
			t.Errorf("there is %s", got)
		}
	}
	_, err := UnpackTo(t.Context(), archive, final, UnpackOptions{})
	var ue *UnpackError
	if !errors.Is(err, fs.ErrExist) || !errors.As(err, &ue) {
		t.Errorf("over an existing directory: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx     context.Context
		archive string
		want    error
	}{{ctx, archive, context.Canceled}, {t.Context(), dir + "/missing", fs.ErrNotExist}, {t.Context(), final, nil}} {
		_, err := UnpackTo(c.ctx, c.archive, dir+"/other", UnpackOptions{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.archive, err)
		}
		if got := strings.Join(listing(t, dir), " "); got != "a.tar final final/ro final/ro/f" {
			t.Errorf("there is %s", got)
		}
	}
}

// smallDisk is a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestDiskFull: a full disk is reported as such, and nothing is left on it.
func TestDiskFull(t *testing.T) {
	disk := smallDisk(t)
	big := strings.Repeat("0123456789abcdef", 1<<17)
	archive := filepath.Join(t.TempDir(), "a.tar")
	writeFile(t, archive, string(tarball(t, member{name: "d/ro/", kind: '5', mode: 0o555}, member{name: "d/ro/f", body: big})))
	s := newScript(t, whole(big, `"1"`))
	for name, do := range map[string]func() error{
		"unpack": func() error { _, err := UnpackTo(t.Context(), archive, disk+"/x", UnpackOptions{}); return err },
		"fetch":  func() error { _, err := Fetch(t.Context(), s.URL, disk+"/x", quick()); return err },
		"copy":   func() error { _, err := Fetch(t.Context(), archive, disk+"/x", quick()); return err },
	} {
		if err := do(); !errors.Is(err, syscall.ENOSPC) || Retryable(err) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%s: %v", name, err)
		}
		if got := listing(t, disk); len(got) != 0 {
			t.Errorf("%s left %q", name, got)
		}
	}
	if len(s.got) != 1 {
		t.Errorf("%d requests, though no server can help", len(s.got))
	}
}

func TestRemoveTree(t *testing.T) {
	dir := t.TempDir()
	outside := dir + "/outside"
	writeFile(t, outside+"/f", "x")
	tree := dir + "/tree"
	for i := range 1100 { // more than one read of a directory gives
		writeFile(t, tree+"/many/"+strings.Repeat("n", i%50)+string(rune('a'+i/50)), "")
	}
	writeFile(t, tree+"/shut/shut/f", "x")
	err := errors.Join(os.Symlink(outside, tree+"/link"), os.Chmod(tree+"/shut/shut", 0), os.Chmod(tree+"/shut", 0o100))
	if err != nil {
		t.Fatal(err)
	}
	if err := RemoveTree(tree + "/"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(listing(t, dir), " "); got != "outside outside/f" {
		t.Errorf("left %s", got)
	}
	for _, gone := range []string{tree, tree + "/below/x"} {
		if err := RemoveTree(gone); err != nil {
			t.Error(err)
		}
	}
	if err := RemoveTree(outside + "/f"); err != nil || len(listing(t, outside)) != 0 {
		t.Errorf("a file: %v", err)
	}
}

// TestRemoveTreeSparesMounts: what is mounted in a tree is somebody's data.
func TestRemoveTreeSparesMounts(t *testing.T) {
	disk := smallDisk(t)
	writeFile(t, disk+"/data", "precious")
	dir := t.TempDir()
	writeFile(t, dir+"/tree/f", "x")
	where := dir + "/tree/mnt"
	if err := os.Mkdir(where, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(disk, where, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	err := RemoveTree(dir + "/tree")
	if err == nil || !strings.Contains(err.Error(), "mnt: something is mounted here") {
		t.Errorf("error %v", err)
	}
	if err := unix.Unmount(where, 0); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(disk + "/data"); string(data) != "precious" {
		t.Errorf("%q, %v", data, err)
	}
	if got := strings.Join(listing(t, dir), " "); got != "tree tree/mnt" {
		t.Errorf("left %s", got)
	}
	if err := RemoveTree(dir + "/tree"); err != nil {
		t.Error(err)
	}
}

// TestRemoveTreeAsOrdinaryUser: directories without write permission do not stay.
func TestRemoveTreeAsOrdinaryUser(t *testing.T) {
	needRoot(t)
	base := publicDir(t)
	dest := base + "/dest"
	archive := base + "/a.tar"
	writeFile(t, archive, string(modesArchive(t)))
	if err := errors.Join(os.Mkdir(dest, 0o755), os.Chown(dest, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	tree := dest + "/tree"
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tree, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	res := runChild(t, publicCopy(t), childTask{Unpack: archive, To: tree, Times: 1, Remove: tree})
	if res.Err != "" {
		t.Error(res.Err)
	}
	if got := listing(t, dest); len(got) != 0 {
		t.Errorf("left %q", got)
	}
}
