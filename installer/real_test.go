package installer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// realTree makes a tree with everything that an archive may hold. Where the file
// system allows it, names are bytes that are no UTF-8.
func realTree(t *testing.T) string {
	t.Helper()
	root := tempDir(t)
	dir := filepath.Join(root, "top")
	long := strings.Repeat("long name ", 20)
	for name, content := range map[string]string{
		"empty": "", "small": "content", "big": strings.Repeat("0123456789abcdef", 20_000),
		"a b/c\td": "blanks", "new\nline": "x", "back\\slash": "x", "q\"u'o`te": "x", "-dash": "x", "\xff\xfe": "no UTF-8",
		"umläut/ß": "UTF-8", long + "/" + long + "/" + long: "long", "ro/f": "in a directory without write permission",
	} {
		writeFile(t, filepath.Join(dir, name), content)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Link(dir+"/small", dir+"/zlink"))
	must(os.Link(dir+"/small", dir+"/ro/link"))
	must(os.Symlink("small", dir+"/sym"))
	must(os.Symlink("../a b", dir+"/ro/up"))
	must(os.Symlink("nowhere", dir+"/dangling"))
	must(os.Symlink("ro/../small", dir+"/detour"))
	must(os.Symlink(strings.Repeat("x/", 60)+"end", dir+"/longlink"))
	must(os.MkdirAll(dir+"/emptydir/below", 0o700))
	must(os.Chmod(dir+"/small", 0o755))
	must(os.Chmod(dir+"/empty", 0o400))
	must(os.Chmod(dir+"/ro", 0o555))
	for _, name := range []string{"small", "ro", "emptydir", "."} {
		when := time.Unix(1_000_000_000+int64(len(name)), 5000)
		must(os.Chtimes(filepath.Join(dir, name), when, when))
	}
	must(os.Chtimes(dir+"/big", time.Unix(-86400, 0), time.Unix(-86400, 0)))
	return root
}

func TestRealArchives(t *testing.T) {
	needPeer(t, "tar")
	setUmask(t, 0o022)
	root := realTree(t)
	want := snapshot(t, root+"/top")
	for _, kind := range []string{"gnu", "pax"} {
		archive := root + "/" + kind + ".tar"
		run(t, root, "tar", "--format="+kind, "-cf", archive, "top")
		plain, err := os.ReadFile(archive)
		if err != nil {
			t.Fatal(err)
		}
		for _, format := range []string{"tar", "gz", "xz", "zst", "bz2"} {
			t.Run(kind+" "+format, func(t *testing.T) {
				dir, sum, err := extract(t, compress(t, format, plain), UnpackOptions{})
				if err != nil {
					t.Fatal(err)
				}
				compareTrees(t, dir+"/top", want, kind == "gnu")
				if sum.Format != format || sum.Hardlinks != 2 || sum.Symlinks != 5 || sum.Files != 12 {
					t.Errorf("summary %+v", sum)
				}
			})
		}
	}
}

// compareTrees compares the tree in dir with a snapshot; GNU's format has whole
// seconds only.
func compareTrees(t *testing.T, dir, want string, seconds bool) {
	t.Helper()
	got := snapshot(t, dir)
	if seconds {
		got, want = withoutFractions(got), withoutFractions(want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func withoutFractions(snapshot string) string {
	return regexp.MustCompile(`(-?\d+)\.\d{9}`).ReplaceAllString(snapshot, "$1")
}

func TestSparseArchives(t *testing.T) {
	needPeer(t, "tar")
	root := t.TempDir()
	writeSparse(t, root+"/holes", 32<<20, map[int64]string{0: "start", 10 << 20: "middle", 32<<20 - 3: "end"})
	writeSparse(t, root+"/nothing", 8<<20, nil)
	writeSparse(t, root+"/tail", 4<<20+17, map[int64]string{2 << 20: strings.Repeat("dense", 100_000)})
	for _, args := range [][]string{
		{"--format=gnu"}, {"--format=pax", "--sparse-version=0.0"},
		{"--format=pax", "--sparse-version=0.1"}, {"--format=pax", "--sparse-version=1.0"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			archive := filepath.Join(t.TempDir(), "s.tar")
			run(t, root, "tar", append(args, "-Scf", archive, "holes", "nothing", "tail")...)
			dir := t.TempDir()
			sum, err := UnpackFile(context.Background(), archive, dir, UnpackOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"holes", "nothing", "tail"} {
				run(t, root, "cmp", name, dir+"/"+name)
				if used := diskUse(t, dir+"/"+name); used > 1<<20 {
					t.Errorf("%s takes %d bytes", name, used)
				}
			}
			if sum.Bytes != 32<<20+8<<20+4<<20+17 {
				t.Errorf("summary %+v", sum)
			}
			_, err = UnpackFile(context.Background(), archive, t.TempDir(), UnpackOptions{Limits: Limits{FileBytes: 31 << 20}})
			if !errors.Is(err, ErrLimit) {
				t.Errorf("over the limit: %v", err)
			}
		})
	}
}

// TestHugeSparseFile: 20 GiB that are a few bytes take no room and little time.
func TestHugeSparseFile(t *testing.T) {
	dir, sum, err := extract(t, compress(t, "gz", sparseV1(20<<30, 3, "abc")), UnpackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(dir + "/sparse")
	if err != nil || st.Size() != 20<<30 || sum.Bytes != 20<<30 {
		t.Fatalf("%v, %v, %+v", st, err, sum)
	}
	if used := diskUse(t, dir+"/sparse"); used > 1<<20 {
		t.Errorf("it takes %d bytes", used)
	}
	data := make([]byte, 8)
	f, err := os.Open(dir + "/sparse")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Read(data); err != nil || string(data) != "a\x00b\x00c\x00\x00\x00" {
		t.Errorf("%q, %v", data, err)
	}
}

func writeSparse(t *testing.T, path string, size int64, data map[int64]string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		t.Fatal(err)
	}
	for at, s := range data {
		if _, err := f.WriteAt([]byte(s), at); err != nil {
			t.Fatal(err)
		}
	}
}

func diskUse(t *testing.T, path string) int64 {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

// TestGitArchive unpacks what git makes, which begins with a global PAX header.
func TestGitArchive(t *testing.T) {
	needPeer(t, "git")
	repo := t.TempDir()
	writeFile(t, repo+"/dir/file", "content")
	run(t, repo, "git", "init", "-q")
	run(t, repo, "git", "add", ".")
	run(t, repo, "git", "-c", "user.name=n", "-c", "user.email=n@example.org", "commit", "-qm", "m")
	cmd := exec.Command("git", "archive", "--prefix=v1/", "HEAD")
	cmd.Dir = repo
	archive, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(archive, []byte("pax_global_header")) {
		t.Fatal("no global header in git's archive")
	}
	dir, sum, err := extract(t, archive, UnpackOptions{StripComponents: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(listing(t, dir), " "); got != "dir dir/file" || sum.Skipped != 2 {
		t.Errorf("got %s, %+v", got, sum)
	}
}
