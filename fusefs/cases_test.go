package fusefs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// TestCreate is case 14: a new file made by cp; one that is made read-only, and
// written; one in a directory where new files may be put, and no more.
func TestCreate(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		m := mounted(t, p, p.Addr)
		m.shell(t, `echo new > "$2/../src.$$"; cp "$2/../src.$$" "$1/copied"; rm "$2/../src.$$"`)
		if got := read(t, m.path("copied")); got != "new\n" {
			t.Errorf("copied file holds %q", got)
		}
		fd, err := unix.Open(m.path("readonly"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o444)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, []byte("content")); err != nil {
			t.Errorf("write to a read-only file through its creator's descriptor: %v", err)
		}
		if err := unix.Close(fd); err != nil {
			t.Errorf("close: %v", err)
		}
		if got := read(t, m.path("readonly")); got != "content" {
			t.Errorf("read-only file holds %q", got)
		}
		if _, err := unix.Open(m.path("readonly"), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o444); err != unix.EEXIST {
			t.Errorf("exclusive create of what exists: %v", err)
		}
	})
}

func TestPutOnlyDirectory(t *testing.T) {
	m := near(t)
	if err := os.Mkdir(m.path("in"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := m.client.Setacl(t.Context(), "/in", "unix:"+chirptest.User(t), "pl"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.path("in/new"), []byte("put"), 0o644); err != nil {
		t.Errorf("a new file: %v", err)
	}
	if got, err := os.ReadFile(m.remote("in/new")); err != nil || string(got) != "put" {
		t.Errorf("the server has %q, %v", got, err)
	}
	if err := os.WriteFile(m.path("in/new"), []byte("again"), 0o644); !errors.Is(err, os.ErrPermission) {
		t.Errorf("writing it again: %v, want no permission", err)
	}
}

// TestRenamedDirectory is case 16.
func TestRenamedDirectory(t *testing.T) {
	m := near(t)
	if err := os.Mkdir(m.path("d"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(m.path("d/f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("before "); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.path("d"), m.path("e")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("after"); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(m.path("e/f")); err != nil || st.Size() != 12 {
		t.Errorf("stat of the new path: %v, %v", st, err)
	}
	if err := f.Chmod(0o600); err != nil {
		t.Errorf("chmod through the open file: %v", err)
	}
	if _, err := os.Stat(m.path("d/f")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stat of the old path: %v", err)
	}
	if got := read(t, m.path("e/f")); got != "before after" {
		t.Errorf("read %q", got)
	}
}

// TestHardLinks is case 17.
func TestHardLinks(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		m := mounted(t, p, p.Addr, quick)
		write(t, m.path("a"), "content")
		if err := os.Link(m.path("a"), m.path("b")); err != nil {
			t.Fatal(err)
		}
		for range 2 { // what was just told, and what is asked for again
			a, b := stat(t, m.path("a")), stat(t, m.path("b"))
			if a.Ino != b.Ino || a.Nlink != 2 || b.Nlink != 2 {
				t.Errorf("inodes %d and %d, links %d and %d", a.Ino, b.Ino, a.Nlink, b.Nlink)
			}
			expire()
		}
		if out, err := m.try(`cp "$1/a" "$1/b"`); err == nil || !strings.Contains(out, "same file") {
			t.Errorf("cp of a file onto itself: %v: %s", err, out)
		}
		if err := os.Remove(m.path("a")); err != nil {
			t.Fatal(err)
		}
		if st := stat(t, m.path("b")); st.Nlink != 1 {
			t.Errorf("%d links after one was removed", st.Nlink)
		}
		if got := read(t, m.path("b")); got != "content" {
			t.Errorf("read %q", got)
		}
	})
}

func stat(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("stat %s: %v", path, err)
	}
	return st
}

// TestUnlinkedOpenFile is the pid file of case 18: it is written, and read, after its
// name is gone. Small files, whose content came with the open, stay readable too.
func TestUnlinkedOpenFile(t *testing.T) {
	m := near(t)
	f, err := os.OpenFile(m.path("pid"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write(t, m.path("small"), "small")
	small, err := os.Open(m.path("small"))
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	for _, name := range []string{"pid", "small"} {
		if err := os.Remove(m.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.WriteString("12345"); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Size != 5 || st.Nlink != 0 {
		t.Errorf("fstat: size %d, links %d, %v", st.Size, st.Nlink, err)
	}
	buf := make([]byte, 10)
	if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != "12345" {
		t.Errorf("read %q", buf[:n])
	}
	if n, _ := small.ReadAt(buf, 0); string(buf[:n]) != "small" {
		t.Errorf("read %q of the small file", buf[:n])
	}
	// A new file that has the old one's inode number must be another file.
	write(t, m.path("pid"), "other")
	if n, _ := small.ReadAt(buf, 0); string(buf[:n]) != "small" {
		t.Errorf("then read %q of the small file", buf[:n])
	}
}

// TestSeekAndHoles is case 26.
func TestSeekAndHoles(t *testing.T) {
	m := near(t)
	f, err := os.Create(m.path("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	offsets := []int64{1<<31 - 1, 1<<32 + 5}
	for _, off := range offsets {
		if _, err := f.WriteAt([]byte("xy"), off); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := f.Stat(); err != nil || st.Size() != 1<<32+7 {
		t.Errorf("size %d, %v", st.Size(), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f, err = os.Open(m.path("sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 4)
	for _, off := range offsets {
		if _, err := f.ReadAt(buf, off-2); err != nil && off != offsets[1] || string(buf) != "\x00\x00xy" {
			t.Errorf("at %d: %q, %v", off-2, buf, err)
		}
	}
	if _, err := f.ReadAt(buf, 3<<30); err != nil || string(buf) != "\x00\x00\x00\x00" {
		t.Errorf("the hole: %q, %v", buf, err)
	}
}

// TestTimes is case 27: what was set is told at once as it is told later.
func TestTimes(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		m := mounted(t, p, p.Addr, quick)
		for i, at := range []time.Time{
			time.Unix(-1, 0), time.Unix(-2, 5e8),
			time.Date(2107, 3, 4, 5, 6, 7, 0, time.UTC),
			time.Unix(1_700_000_000, 500_000_000),
		} {
			name := m.path(fmt.Sprint(i))
			write(t, name, "x")
			if err := os.Chtimes(name, at, at); err != nil {
				t.Errorf("%v: %v", at, err)
				continue
			}
			first := stat(t, name)
			expire()
			later := stat(t, name)
			if first.Mtim != later.Mtim || first.Atim != later.Atim {
				t.Errorf("%v: %v at once, %v later", at, first.Mtim, later.Mtim)
			}
			if later.Mtim.Sec != at.Unix() {
				t.Errorf("%v: %d seconds", at, later.Mtim.Sec)
			}
		}
		write(t, m.path("one"), "x")
		before := stat(t, m.path("one"))
		if err := os.Chtimes(m.path("one"), time.Time{}, time.Unix(1e9, 0)); err != nil {
			t.Fatal(err)
		}
		if after := stat(t, m.path("one")); after.Atim != before.Atim || after.Mtim.Sec != 1e9 {
			t.Errorf("setting one time: %v %v, were %v %v", after.Atim, after.Mtim, before.Atim, before.Mtim)
		}
	})
}

// TestSpace is case 28.
func TestSpace(t *testing.T) {
	m := near(t)
	var here, there unix.Statfs_t
	if err := unix.Statfs(m.dir, &here); err != nil {
		t.Fatal(err)
	}
	if err := unix.Statfs(m.server.Root, &there); err != nil {
		t.Fatal(err)
	}
	if here.Blocks*uint64(here.Frsize) != there.Blocks*uint64(there.Frsize) || here.Files != there.Files {
		t.Errorf("%d blocks of %d, want %d of %d", here.Blocks, here.Frsize, there.Blocks, there.Frsize)
	}
	if out := m.shell(t, `df -Pk "$1"`); !strings.Contains(out, "chirp://"+m.server.Addr+"/") {
		t.Errorf("df says:\n%s", out)
	}
}

// TestFullDisk is case 10: a file that does not fit is an error of write, fsync or
// close.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount a small disk")
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Skip("cannot mount a small disk: " + err.Error())
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	p := chirptest.Server(t, func(c *chirpd.Config) { c.Root = disk })
	m := mounted(t, p, p.Addr)
	for _, how := range []string{"close", "fsync"} {
		f, err := os.Create(m.path(how))
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(f.Truncate(0), writeMuch(f, 5<<20))
		if how == "fsync" {
			err = errors.Join(err, f.Sync())
		}
		if again := f.Sync(); err != nil && !errors.Is(again, syscall.ENOSPC) {
			t.Errorf("fsync after the error %v: %v, as if the data were there", err, again)
		}
		err = errors.Join(err, f.Close())
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("5 MiB onto a disk of 3 MiB, with %s: %v", how, err)
		}
		if err := os.Remove(m.path(how)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, m.path("fits"), "there is space again")
	if got := read(t, filepath.Join(disk, "fits")); got != "there is space again" {
		t.Errorf("read %q", got)
	}
}

func writeMuch(f *os.File, n int) error {
	block := make([]byte, 64<<10)
	for ; n > 0; n -= len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

// TestOwner is case 29: everything belongs to the one who mounts, and is usable.
func TestOwner(t *testing.T) {
	need(t, "git")
	p := chirptest.RealServer(t) // it runs as another user where the test is root
	m := mounted(t, p, p.Addr, func(_ *client.Options, o *Options, _ *MountOptions) {
		o.Owner = &Owner{UID: uint32(os.Getuid()), GID: 4242}
	})
	m.shell(t, `cd "$1"; git init -q repo; cd repo; echo a > f; git add f; git commit -qm one; echo b >> f; git status --short`)
	st := stat(t, m.path("repo/f"))
	if int(st.Uid) != os.Getuid() || st.Gid != 4242 {
		t.Errorf("owner %d, group %d", st.Uid, st.Gid)
	}
	if got := read(t, m.path("repo/f")); got != "a\nb\n" {
		t.Errorf("read %q", got)
	}
	if err := os.Chown(m.path("repo/f"), os.Getuid(), 4242); err != nil {
		t.Errorf("chown to what is shown: %v", err)
	}
	if err := os.Chown(m.path("repo/f"), 12345, -1); !errors.Is(err, syscall.EPERM) {
		t.Errorf("chown to somebody else: %v, want EPERM", err)
	}
}
