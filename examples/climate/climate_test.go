package climate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// peer returns the path of a program that a test needs; a test that lacks it is skipped, or fails
// where SKELETONKEY_REQUIRE_PEERS=1.
func peer(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
		t.Fatalf("%s is required: %v", name, err)
	}
	t.Skipf("needs %s: %v", name, err)
	return ""
}

// members returns what an archive holds: name, mode, owner and time in one line, then the content.
func members(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = fmt.Sprintf("%c %o %d:%d %q:%q %s\n%s",
			h.Typeflag, h.Mode, h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC().Format(time.RFC3339), data)
	}
}

func TestTarball(t *testing.T) {
	first, err := Tarball()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Tarball()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Error("two calls made different archives")
	}
	all := members(t, first)
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{"climate/", "climate/climate.sh", "climate/plot.awk", "climate/records.awk", "climate/stats.awk", "climate/table.awk"}
	if !slices.Equal(names, want) {
		t.Errorf("members %q, want %q", names, want)
	}
	script, err := os.ReadFile("app/climate.sh")
	if err != nil {
		t.Fatal(err)
	}
	head := "0 755 0:0 \"\":\"\" 2020-01-01T00:00:00Z\n"
	if all[Script] != head+string(script) {
		t.Errorf("%s is not the script as it lies in app, with the head %q", Script, head)
	}
}

// build.sh and Tarball must make the same application, though not the same compressed bytes.
func TestBuildScript(t *testing.T) {
	peer(t, "tar")
	peer(t, "gzip")
	dir := t.TempDir()
	tree := filepath.Join(dir, "a tree")
	if err := os.CopyFS(tree, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	build := func(from, name string) []byte {
		t.Helper()
		archive := filepath.Join(dir, name)
		if out, err := exec.Command("sh", filepath.Join(from, "build.sh"), archive).CombinedOutput(); err != nil {
			t.Fatalf("build.sh: %v\n%s", err, out)
		}
		data, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	one := build(".", "one.tar.gz")
	if two := build(tree, "two:colon.tar.gz"); !bytes.Equal(one, two) {
		t.Error("copies of the files made different archives")
	}
	goes, err := Tarball()
	if err != nil {
		t.Fatal(err)
	}
	want, got := members(t, goes), members(t, one)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs:\n%.200s\nTarball has:\n%.200s", name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("build.sh packs %d members, Tarball %d", len(got), len(want))
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 3 {
		t.Errorf("build.sh left something: %q", left)
	}
}

func TestFiles(t *testing.T) {
	for _, name := range []string{"app/climate.sh", "app/records.awk", "job.ini", "make-records.sh"} {
		got, err := fs.ReadFile(Files(), name)
		if err != nil {
			t.Error(err)
			continue
		}
		if want, _ := os.ReadFile(name); !bytes.Equal(got, want) {
			t.Errorf("%s is not as it lies in the tree", name)
		}
	}
}

func TestJob(t *testing.T) {
	job, err := Job("127.0.0.1:1234", "http://127.0.0.1:5678", "/tmp/a b/data")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(job)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			got = append(got, line)
		}
	}
	want := []string{
		"[Server]", "location = chirp://127.0.0.1:1234",
		"[Directories]", "export_base = /tmp/a b/data", "read = " + Records, "write = " + Results,
		"[Application]", "location = http://127.0.0.1:5678/" + Archive, "script = " + Script,
		"arguments = " + Records + " " + Results,
		"[Runtime]", "location = http://127.0.0.1:5678/dist",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if bytes.Contains(job, []byte("example.org")) {
		t.Error("a value of the sample is left")
	}
}

func TestShellcheck(t *testing.T) {
	out, err := exec.Command(peer(t, "shellcheck"), "--shell=sh",
		"app/climate.sh", "build.sh", "make-records.sh").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
