package confine

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// A strict umask shows that modes do not depend on it.
func TestMain(m *testing.M) {
	unix.Umask(0o077)
	goleak.VerifyTestMain(m)
}

// tree is an export with a place outside beside it.
type tree struct {
	*testing.T
	*Root
	dir     string // the export
	outside string
}

// newTree opens an empty export and checks, when the test is over, that every
// descriptor was closed.
func newTree(t *testing.T, opts Options) *tree {
	t.Helper()
	top := t.TempDir()
	tr := &tree{T: t, dir: filepath.Join(top, "export"), outside: filepath.Join(top, "outside")}
	for _, dir := range []string{tr.dir, tr.outside} {
		must(t, os.Mkdir(dir, 0o755))
	}
	root, err := Open(tr.dir, opts)
	must(t, err)
	tr.Root = root
	t.Cleanup(func() {
		must(t, root.Close())
		if n := root.refs.Load(); n != 0 {
			t.Errorf("%d At values were not closed", n)
		}
		if left := heldBelow(t, top); len(left) > 0 {
			t.Errorf("descriptors left open: %q", left)
		}
	})
	return tr
}

// suite runs a test both ways in which a path is walked.
func suite(t *testing.T, test func(tr *tree)) {
	t.Helper()
	t.Run("whole paths", func(t *testing.T) {
		tr := newTree(t, Options{})
		if !tr.fast {
			t.Skip("the kernel has no openat2")
		}
		test(tr)
	})
	t.Run("component by component", func(t *testing.T) {
		tr := newTree(t, Options{})
		tr.fast = false
		test(tr)
	})
}

// heldBelow lists this process's descriptors of files below dir.
func heldBelow(t *testing.T, dir string) []string {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var held []string
	for _, fd := range fds {
		if name, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(name, dir+"/") {
			held = append(held, name)
		}
	}
	return held
}

// at walks and closes the At when the test is over.
func (tr *tree) at(path string, follow bool) *At {
	tr.Helper()
	a, err := tr.Walk(path, follow)
	must(tr, err)
	tr.Cleanup(a.Close)
	return a
}

func (tr *tree) real(path string) string { return filepath.Join(tr.dir, path) }

// write makes a file, and the directories above it, behind the server's back.
func (tr *tree) write(path, content string) {
	tr.Helper()
	must(tr, os.MkdirAll(filepath.Dir(tr.real(path)), 0o755))
	must(tr, os.WriteFile(tr.real(path), []byte(content), 0o644))
	must(tr, os.Chmod(tr.real(path), 0o644))
}

func (tr *tree) mkdir(paths ...string) {
	tr.Helper()
	for _, path := range paths {
		must(tr, os.MkdirAll(tr.real(path), 0o755))
	}
}

func (tr *tree) symlink(target, path string) {
	tr.Helper()
	must(tr, os.MkdirAll(filepath.Dir(tr.real(path)), 0o755))
	must(tr, os.Symlink(target, tr.real(path)))
}

// names lists a directory with private names.
func (tr *tree) names(path string) []string {
	tr.Helper()
	entries, err := os.ReadDir(tr.real(path))
	must(tr, err)
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// content reads a file behind the server's back.
func (tr *tree) content(path string) string {
	tr.Helper()
	data, err := os.ReadFile(tr.real(path))
	must(tr, err)
	return string(data)
}

// get reads a file through the root.
func (r *Root) get(path string) (string, error) {
	var data []byte
	err := r.Do(path, true, func(a *At) error {
		f, info, err := a.OpenFile(unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		data = make([]byte, info.Size)
		_, err = f.ReadAt(data, 0)
		return err
	})
	return string(data), err
}

func itoa(i int) string { return strconv.Itoa(i) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// inMemory puts the test's files in memory where it can: it makes many.
func inMemory(t *testing.T) {
	t.Helper()
	const shm = "/dev/shm"
	if unix.Access(shm, unix.W_OK) == nil {
		t.Setenv("TMPDIR", shm)
	}
}

func needRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can " + why)
	}
}
