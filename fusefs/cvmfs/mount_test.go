package cvmfs

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// mount mounts the repository until the test ends.
func (p *published) mount(t testing.TB, settings ...func(*Config)) string {
	t.Helper()
	c := p.config(t)
	for _, set := range settings {
		set(&c)
	}
	return mountConfig(t, c)
}

// mountConfig mounts a repository until the test ends.
func mountConfig(t testing.TB, c Config) string {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil || os.Geteuid() != 0 {
		missing(t, "mounting takes root and /dev/fuse")
	}
	dir, err := os.MkdirTemp("/tmp", "cvmfs-")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Mount(dir)
	if err != nil {
		r.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := errors.Join(m.Close(ctx), os.Remove(dir)); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// readTree reads every regular file below dir, one after the other.
func readTree(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir)] = hashOf(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestMount(t *testing.T) {
	t.Parallel()
	files := variety()
	p := publish(t, files)
	dir := p.mount(t, func(c *Config) { c.Variables = map[string]string{"ARCH": "x86_64"} })
	want := hashes(files)
	delete(want, "/.cvmfs/secret")
	if got := readTree(t, dir); !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if n, most := objects(p.web.taken()); n == 0 || most != 1 {
		t.Errorf("of %d objects some were fetched %d times", n, most)
	}
	if b, err := os.ReadFile(dir + "/.cvmfs/secret"); err != nil || string(b) != "hidden" {
		t.Errorf("what is hidden: %q, %v", b, err)
	}
	for name, target := range map[string]string{"link": "dir/tool", "arch": "/opt/x86_64/linux/x"} {
		got, err := os.Readlink(filepath.Join(dir, name))
		st, err2 := os.Lstat(filepath.Join(dir, name))
		if err != nil || err2 != nil || got != target || st.Size() != int64(len(target)) {
			t.Errorf("%s leads to %q, %v, %v", name, got, err, err2)
		}
	}
	checkStat(t, dir)
	checkReadOnly(t, dir)
	checkXattrs(t, dir)
}

// checkStat looks at what the kernel shows of some files.
func checkStat(t *testing.T, dir string) {
	t.Helper()
	var st, st2 unix.Stat_t
	stat := func(name string, st *unix.Stat_t) {
		t.Helper()
		if err := unix.Lstat(filepath.Join(dir, name), st); err != nil {
			t.Fatal(name, err)
		}
	}
	if stat("plain.txt", &st); st.Mtim != (unix.Timespec{Sec: 1_234_567_890, Nsec: 123}) || st.Mode != 0o100644 || st.Uid != 0 || st.Size != 6 {
		t.Errorf("plain.txt: %+v", st)
	}
	stat("dir/h1", &st)
	if stat("dir/h2", &st2); st.Ino != st2.Ino || st.Nlink != 2 {
		t.Errorf("hard links: %+v, %+v", st, st2)
	}
	if stat("nested/deeper", &st); st.Mode != 0o40700 {
		t.Errorf("nested/deeper: %+v", st)
	}
	if err := unix.Lstat(dir+"/nowhere", &st); err != unix.ENOENT {
		t.Errorf("nowhere: %v", err)
	}
	var fsst unix.Statfs_t
	if err := unix.Statfs(dir, &fsst); err != nil || fsst.Blocks == 0 || fsst.Files == 0 || fsst.Bfree != 0 {
		t.Errorf("statfs: %+v, %v", fsst, err)
	}
	if err := unix.Access(dir+"/dir/tool", unix.X_OK); err != nil {
		t.Errorf("dir/tool cannot be executed: %v", err)
	}
	if err := unix.Access(dir+"/plain.txt", unix.X_OK); err != unix.EACCES {
		t.Errorf("plain.txt can be executed: %v", err)
	}
}

// checkReadOnly tries to change things.
func checkReadOnly(t *testing.T, dir string) {
	t.Helper()
	for name, err := range map[string]error{
		"create": os.WriteFile(dir+"/x", nil, 0o644),
		"write":  os.WriteFile(dir+"/plain.txt", nil, 0o644),
		"mkdir":  os.Mkdir(dir+"/y", 0o755),
		"remove": os.Remove(dir + "/plain.txt"),
		"chmod":  os.Chmod(dir+"/plain.txt", 0o600),
		"rename": os.Rename(dir+"/plain.txt", dir+"/z"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checkXattrs(t *testing.T, dir string) {
	t.Helper()
	buf := make([]byte, 100)
	for name, want := range map[string]string{"user.revision": "1", "user.fqrn": testName} {
		n, err := unix.Getxattr(dir+"/plain.txt", name, buf)
		if err != nil || string(buf[:n]) != want {
			t.Errorf("%s is %q, %v", name, buf[:max(n, 0)], err)
		}
	}
	if n, err := unix.Getxattr(dir+"/plain.txt", "user.hash", buf); err != nil || n != 2*hashSize {
		t.Errorf("user.hash: %d bytes, %v", n, err)
	}
	if n, err := unix.Getxattr(dir+"/plain.txt", "user.hash", nil); err != nil || n != 2*hashSize {
		t.Errorf("the size of user.hash: %d, %v", n, err)
	}
	if _, err := unix.Getxattr(dir+"/plain.txt", "user.none", buf); err != unix.ENODATA {
		t.Errorf("user.none: %v", err)
	}
	if n, err := unix.Listxattr(dir+"/plain.txt", buf); err != nil || n != 0 {
		t.Errorf("a list of %d bytes, %v", n, err)
	}
}

// TestUnreadable: what cannot be had is an error when it is read, and only then.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	files := maps.Clone(small)
	files["external"] = cvmfstest.File{Content: []byte("elsewhere"), Flags: 128}
	files["strange"] = cvmfstest.File{Content: []byte("hashed by a hash to come"), Flags: 5 << 8}
	files["gone"] = cvmfstest.File{Content: []byte("gone"), Sum: strings.Repeat("0123456789", 4)}
	files["short"] = cvmfstest.File{Content: []byte("short"), Size: 500}
	p := publish(t, files)
	dir := p.mount(t)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 7 {
		t.Fatal(entries, err)
	}
	for _, name := range []string{"external", "strange", "gone", "short"} {
		if _, err := os.ReadFile(filepath.Join(dir, name)); !errors.Is(err, syscall.EIO) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if b, err := os.ReadFile(dir + "/f"); err != nil || string(b) != string(small["f"].Content) {
		t.Errorf("f: %q, %v", b, err)
	}
}

// TestOwner: files belong to whoever mounts, unless their owners are asked for.
func TestOwner(t *testing.T) {
	p := publish(t, small)
	r := p.open(t, func(c *Config) { c.ShowOwner = true })
	if r.owner != nil {
		t.Error("the owners are hidden")
	}
	if r := p.open(t); r.owner == nil || r.owner[0] != uint32(os.Getuid()) {
		t.Error("the owners are shown")
	}
}

// TestOpenFileOutlivesEviction: what is open stays readable when the cache is emptied.
func TestOpenFileOutlivesEviction(t *testing.T) {
	p := publish(t, small)
	dir := p.mount(t)
	f, err := os.Open(dir + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.RemoveAll(filepath.Join(p.cache, "objects")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.cache, "objects"), 0o700); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	n, _ := f.Read(b)
	if string(b[:n]) != string(small["f"].Content) {
		t.Errorf("read %q", b[:n])
	}
	if b, err := os.ReadFile(dir + "/nested/g"); err != nil || string(b) != "more of it" { // and all comes again
		t.Errorf("nested/g: %q, %v", b, err)
	}
}

func TestHostMounted(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"empty.example.org", "full.example.org/x", ".hidden/x"} {
		if err := os.MkdirAll(filepath.Join(base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		"full.example.org": true, "empty.example.org": false, "none.example.org": false,
		"": false, "..": false, ".hidden": false, "full.example.org/x": false,
	} {
		if got := shownBelow(base, name, time.Minute); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if HostMounted("surely-not-there.example.org") {
		t.Error("this machine has a repository that is not there")
	}
}
