package cvmfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newStore opens a store until the test ends.
func newStore(t *testing.T, dir string, quota int64) *store {
	t.Helper()
	s, err := openStore(dir, quota, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// objectFor is the object with this content, without compression.
func objectFor(content []byte) object { return object{sum: sha1Hash.sum(content), plain: true} }

// put puts content into the store.
func put(t *testing.T, s *store, content []byte) object {
	t.Helper()
	o := objectFor(content)
	err := s.fill(t.Context(), o, time.Minute, func(w contentFile) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestQuota(t *testing.T) {
	t.Parallel()
	const size, count = 10 << 10, 60
	s := newStore(t, filepath.Join(t.TempDir(), "c"), 400<<10)
	var all []object
	for i := range count {
		o := put(t, s, noise(size, uint64(i)))
		all = append(all, o)
		// Older and older uses, but for the first one, which is used all the time.
		when := time.Now().Add(time.Duration(i-count) * time.Hour)
		if i == 0 {
			when = time.Now()
		}
		if err := os.Chtimes(filepath.Join(s.dir.Name(), s.path(o)), when, when); err != nil {
			t.Fatal(err)
		}
		s.work.Wait()
	}
	_, total := s.files()
	if total > s.quota || total < s.quota/2 {
		t.Errorf("%d bytes are left of %d", total, s.quota)
	}
	if used, err := s.count(func(n int64) int64 { return n }); err != nil || used != total {
		t.Errorf("the count is %d, %v; there are %d bytes", used, err, total)
	}
	for i, want := range map[int]bool{0: true, 1: false, 5: false, count - 1: true, count - 10: true} {
		if got := s.exists(s.path(all[i])); got != want {
			t.Errorf("object %d of %d is there: %v", i, count, got)
		}
	}
	if _, _, err := s.open(all[5]); err != errAbsent {
		t.Errorf("an evicted object: %v", err)
	}
}

// TestUseKeeps: opening an object moves it to the end of the order of eviction.
func TestUseKeeps(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "c"), -1)
	o := put(t, s, []byte("used"))
	path := filepath.Join(s.dir.Name(), s.path(o))
	old := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	f, size, err := s.open(o)
	if err != nil || size != 4 {
		t.Fatal(size, err)
	}
	f.Close()
	if st, err := os.Stat(path); err != nil || time.Since(st.ModTime()) > time.Hour {
		t.Errorf("its last use was %v, %v", st.ModTime(), err)
	}
}

// TestFillTogether: many want one object, in two stores on one directory; it is
// written once.
func TestFillTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	stores := []*store{newStore(t, dir, -1), newStore(t, dir, -1)}
	content := noise(100_000, 1)
	o := objectFor(content)
	var writes atomic.Int32
	var work sync.WaitGroup
	for i := range 20 {
		work.Go(func() {
			err := stores[i%2].fill(t.Context(), o, time.Minute, func(w contentFile) error {
				writes.Add(1)
				_, err := w.Write(content)
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if writes.Load() != 1 {
		t.Errorf("written %d times", writes.Load())
	}
}

// TestFillFails: a writer that fails leaves nothing, and the next one writes.
func TestFillFails(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "c"), -1)
	o := objectFor([]byte("good"))
	broken := errors.New("broken")
	err := s.fill(t.Context(), o, time.Minute, func(w contentFile) error {
		_, _ = w.Write([]byte("half of it"))
		return broken
	})
	if !errors.Is(err, broken) || s.exists(s.path(o)) {
		t.Errorf("got %v", err)
	}
	err = s.fill(t.Context(), o, time.Minute, func(w contentFile) error {
		_, _ = w.Write([]byte("something that was begun"))
		if err := w.restart(); err != nil {
			return err
		}
		_, err := w.Write([]byte("good"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.forget(o)
	f, size, err := s.open(o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, size)
	if _, err := f.ReadAt(b, 0); err != nil || !bytes.Equal(b, []byte("good")) {
		t.Errorf("got %q, %v", b, err)
	}
	if names, _ := s.names("tmp"); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}

// TestStuckOther: another process has the lock and does nothing. We wait for a while,
// and then do without it.
func TestStuckOther(t *testing.T) {
	s := newStore(t, filepath.Join(t.TempDir(), "c"), -1)
	o := objectFor([]byte("wanted"))
	f, err := s.place.open("tmp/"+fileName(o), os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if held, err := tryLock(f); !held {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.fill(ctx, o, time.Hour, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was given up: %v", err)
	}
	err = s.fill(t.Context(), o, 10*time.Millisecond, func(w contentFile) error {
		_, err := w.Write([]byte("wanted"))
		return err
	})
	if err != nil || !s.exists(s.path(o)) {
		t.Errorf("got %v", err)
	}
}

func TestSweep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	s := newStore(t, dir, -1)
	make := func(name string, age time.Duration) *os.File {
		f, err := s.place.open("tmp/"+name, os.O_RDWR|os.O_CREATE)
		if err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(f.Name(), when, when); err != nil {
			t.Fatal(err)
		}
		return f
	}
	make("dead", 0).Close()
	make("dead.plain", 0).Close()
	make("alone.77.1234", time.Hour).Close()
	make("alone.plain.77.1234", 48*time.Hour).Close()
	alive := make("alive", 48*time.Hour)
	defer alive.Close()
	if held, err := tryLock(alive); !held {
		t.Fatal(err)
	}
	newStore(t, dir, -1)
	names, _ := s.names("tmp")
	if got := fmt.Sprint(names); len(names) != 2 || !strings.Contains(got, "alive") || !strings.Contains(got, "alone.77.1234") {
		t.Errorf("left are %v", names)
	}
}

// TestPlaceOfOthers: a directory in which others have a say is no cache. An attacker
// in a shared /tmp would make it first, or swap it later.
func TestPlaceOfOthers(t *testing.T) {
	base := t.TempDir()
	open := filepath.Join(base, "open")
	if err := os.Mkdir(open, 0o777); err != nil || os.Chmod(open, 0o777) != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refusedPlaces := map[string]string{open: "can be written by others", link: "", file: ""}
	if os.Geteuid() == 0 {
		theirs := filepath.Join(base, "theirs")
		if err := os.Mkdir(theirs, 0o700); err != nil || os.Chown(theirs, 12345, 12345) != nil {
			t.Fatal(err)
		}
		refusedPlaces[theirs] = "belongs to user 12345"
	}
	for dir, says := range refusedPlaces {
		s, err := openStore(dir, -1, slog.Default())
		if err == nil {
			s.close()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", filepath.Base(dir), err)
		}
	}
}

// TestSwappedAbove: somebody who may write the directory above puts another one in the
// cache's place. The open store stays in the one that it has checked.
func TestSwappedAbove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	s := newStore(t, dir, -1)
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	evil := objectFor([]byte("evil"))
	path := filepath.Join(dir, s.path(evil))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("lies"), evil.trailer(4, 0)...), 0o666); err != nil {
		t.Fatal(err)
	}
	if s.has(evil) {
		t.Error("the other directory is used")
	}
	o := put(t, s, []byte("ours"))
	if _, err := os.Stat(filepath.Join(dir+".old", s.path(o))); err != nil {
		t.Error(err)
	}
}

// TestFullDisk: half of the cache makes room when the disk is full; where that does
// not help, the error says so.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		missing(t, "a small file system takes root")
	}
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		missing(t, "no tmpfs here: "+err.Error())
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	p := publish(t, tree200())
	p.cache = filepath.Join(dir, "c")
	r, err := Open(t.Context(), p.config(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i := range 200 {
		name := fmt.Sprintf("f%d", i)
		sub := fmt.Sprintf("d%d", i%7)
		e := lookupFrom(t, r, r.root, sub, name)
		if _, err := readNode(t.Context(), &node{repo: r, spot: spot{path: "/" + sub + "/" + name}, entry: e}); err != nil {
			t.Fatalf("file %d of 200, which do not fit all at once: %v", i, err)
		}
	}
	e := lookupFrom(t, r, r.root, "big")
	_, err = readNode(t.Context(), &node{repo: r, spot: r.root.below(e), entry: e})
	if !errors.Is(err, unix.ENOSPC) {
		t.Errorf("a chunk larger than the disk: %v", err)
	}
}
