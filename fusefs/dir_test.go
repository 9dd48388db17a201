package fusefs

import (
	"errors"
	"fmt"
	"os"
	"sort"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

// TestListingAgrees checks that what a listing tells of files, directories and links
// is what each tells by itself.
func TestListingAgrees(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		m := mounted(t, p, p.Addr, quick)
		write(t, m.path("file"), "content")
		if err := os.Mkdir(m.path("dir"), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, target := range []string{"file", "dir", "nowhere", "/etc/passwd"} {
			if err := os.Symlink(target, m.path("to-"+fmt.Sprint(len(target)))); err != nil {
				t.Fatal(err)
			}
		}
		expire() // so that the listing is believed
		entries, err := os.ReadDir(m.dir)
		if err != nil || len(entries) != 6 {
			t.Fatalf("%d entries, %v", len(entries), err)
		}
		listed := make(map[string]unix.Stat_t)
		for _, e := range entries {
			listed[e.Name()] = stat(t, m.path(e.Name()))
		}
		expire()
		for name, st := range listed {
			now := stat(t, m.path(name))
			now.Atim = st.Atim // a real server reads links
			if now != st {
				t.Errorf("%s: listed as\n%+v, by itself\n%+v", name, st, now)
			}
		}
	})
}

// TestDeleteWhileReading is case 21, with fewer entries.
func TestDeleteWhileReading(t *testing.T) {
	m := near(t)
	const count = 1200
	if err := os.Mkdir(m.remote("big"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range count {
		write(t, m.remote(fmt.Sprintf("big/%05d", i)), "")
	}
	d, err := os.Open(m.path("big"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	half, err := d.Readdirnames(count / 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range half[:500] {
		if err := os.Remove(m.path("big/" + name)); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := d.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	unique(t, append(half, rest...), count)
	if _, err := d.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	again, err := d.Readdirnames(-1)
	if err != nil {
		t.Fatal(err)
	}
	unique(t, again, count-500)
	d.Close()
	if err := os.RemoveAll(m.path("big")); err != nil {
		t.Errorf("remove all: %v", err)
	}
	if _, err := os.Lstat(m.remote("big")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func unique(t testing.TB, names []string, want int) {
	t.Helper()
	sort.Strings(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			t.Errorf("%s comes twice", names[i])
		}
	}
	if len(names) != want {
		t.Errorf("%d names, want %d", len(names), want)
	}
}

// TestSeekBack goes back to a place in the middle of a directory.
func TestSeekBack(t *testing.T) {
	m := near(t)
	for i := range 300 {
		write(t, m.remote(fmt.Sprintf("%0200d", i)), "")
	}
	fd, err := unix.Open(m.dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	buf := make([]byte, 8192)
	var last []string
	var place int64
	for i := 0; ; i++ {
		if i == 3 {
			if place, err = unix.Seek(fd, 0, 1); err != nil {
				t.Fatal(err)
			}
		}
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
		if i >= 3 {
			_, _, last = unix.ParseDirent(buf[:n], -1, last)
		}
	}
	if _, err := unix.Seek(fd, place, 0); err != nil {
		t.Fatal(err)
	}
	var again []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil || n == 0 {
			break
		}
		_, _, again = unix.ParseDirent(buf[:n], -1, again)
	}
	if fmt.Sprint(again) != fmt.Sprint(last) || len(last) == 0 {
		t.Errorf("after seeking back %d entries, before %d", len(again), len(last))
	}
}

// TestRmdir is case 22.
func TestRmdir(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		m := mounted(t, p, p.Addr)
		if err := os.Mkdir(m.path("d"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := m.client.Setacl(t.Context(), "/d", "unix:somebody", "rl"); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(m.remote("d/.__acl")); err != nil {
			t.Fatal(err)
		}
		write(t, m.path("d/f"), "")
		if names, err := os.ReadDir(m.path("d")); err != nil || len(names) != 1 {
			t.Errorf("entries %v, %v; want the file alone", names, err)
		}
		if err := unix.Rmdir(m.path("d")); err != syscall.ENOTEMPTY {
			t.Errorf("rmdir of a directory with a file: %v", err)
		}
		if err := os.Remove(m.path("d/f")); err != nil {
			t.Fatal(err)
		}
		if err := unix.Rmdir(m.path("d")); err != nil {
			t.Errorf("rmdir of a directory with nothing but an ACL: %v", err)
		}
	})
}

// TestOthersChanges checks that what somebody else does on the server shows after the
// time for which things are believed, at the latest.
func TestOthersChanges(t *testing.T) {
	m := near(t, quick)
	write(t, m.path("a"), "old")
	if _, err := os.ReadDir(m.dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(m.remote("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.remote("a"), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, m.remote("a/b"), "new")
	write(t, m.remote("c"), "new")
	expire()
	if st, err := os.Stat(m.path("a")); err != nil || !st.IsDir() {
		t.Errorf("a file that became a directory: %v, %v", st, err)
	}
	if got := read(t, m.path("a/b")) + read(t, m.path("c")); got != "newnew" {
		t.Errorf("read %q", got)
	}
}

// TestRenameNoReplace checks that a name which is taken is not replaced, whatever kind
// of thing moves.
func TestRenameNoReplace(t *testing.T) {
	m := near(t)
	write(t, m.path("f"), "f")
	write(t, m.path("taken"), "taken")
	if err := os.Mkdir(m.path("d"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("x", m.path("l")); err != nil {
		t.Fatal(err)
	}
	write(t, m.remote("hidden"), "of somebody else") // no look-up has seen it
	for _, name := range []string{"f", "d", "l"} {
		for _, to := range []string{"taken", "hidden"} {
			if err := unix.Renameat2(unix.AT_FDCWD, m.path(name), unix.AT_FDCWD, m.path(to), unix.RENAME_NOREPLACE); err != unix.EEXIST {
				t.Errorf("%s to %s: %v, want EEXIST", name, to, err)
			}
		}
		if err := unix.Renameat2(unix.AT_FDCWD, m.path(name), unix.AT_FDCWD, m.path(name+"2"), unix.RENAME_NOREPLACE); err != nil {
			t.Errorf("%s to a free name: %v", name, err)
		}
		if _, err := os.Lstat(m.path(name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s has its old name: %v", name, err)
		}
	}
	if got := read(t, m.path("f2")) + read(t, m.path("hidden")); got != "fof somebody else" {
		t.Errorf("read %q", got)
	}
	if st := stat(t, m.path("f2")); st.Nlink != 1 {
		t.Errorf("%d links after the rename", st.Nlink)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, m.path("f2"), unix.AT_FDCWD, m.path("taken"), unix.RENAME_EXCHANGE); err != unix.EINVAL {
		t.Errorf("exchange: %v, want EINVAL", err)
	}
}

// TestAbsentInListing checks that the absence of a name, which a listing told, is not
// believed for longer than the listing.
func TestAbsentInListing(t *testing.T) {
	m := near(t, quick)
	list(t, m.dir)
	listed := time.Now()
	time.Sleep(ttl / 2)
	if _, err := os.Stat(m.path("f")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	write(t, m.remote("f"), "content")
	time.Sleep(time.Until(listed.Add(ttl + ttl/10)))
	if _, err := os.Stat(m.path("f")); err != nil {
		t.Error(err)
	}
}
