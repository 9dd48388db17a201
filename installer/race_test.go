package installer

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// swapper exchanges the directory dest/d for a link to the directory outside, to
// and fro, until it is stopped.
type swapper struct {
	stop chan struct{}
	done sync.WaitGroup
}

func startSwapper(t *testing.T, s scene) *swapper {
	t.Helper()
	if err := os.MkdirAll(s.dest+"/d/e", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(s.outside, s.dest+"/other"); err != nil {
		t.Fatal(err)
	}
	sw := &swapper{stop: make(chan struct{})}
	sw.done.Go(func() {
		for {
			select {
			case <-sw.stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, s.dest+"/d", unix.AT_FDCWD, s.dest+"/other", unix.RENAME_EXCHANGE)
			}
		}
	})
	return sw
}

func (sw *swapper) end() {
	close(sw.stop)
	sw.done.Wait()
}

// racedArchive touches names that exist outside, in every way that there is, and
// begins with another way for each turn.
func racedArchive(t *testing.T, turn int) []byte {
	const sym, hard, dir = tar.TypeSymlink, tar.TypeLink, tar.TypeDir
	var members []member
	for i := range 20 {
		n := fmt.Sprint(i)
		members = append(members, member{name: "d/e/", kind: dir, mode: 0o711},
			member{name: "d/secret", body: "evil"}, member{name: "d/e/secret", body: "evil"},
			member{name: "d/new" + n, body: "evil"}, member{name: "d/e/new" + n, body: "evil"},
			member{name: "d/dir" + n + "/", kind: dir}, member{name: "d/dir" + n + "/new", body: "evil"}, member{name: "d/e/link" + n, kind: sym, link: "../secret"},
			member{name: "d/hard" + n, kind: hard, link: "d/secret"}, member{name: "hard" + n, kind: hard, link: "d/e/secret"})
	}
	turn %= len(members)
	members = append(members[turn:], members[:turn]...)
	// Last, because it may put a directory into the place of the link.
	return tarball(t, append(members, member{name: "d/", kind: dir, mode: 0o700})...)
}

func newRacedScene(t *testing.T) scene {
	s := newScene(t)
	writeFile(t, s.outside+"/e/secret", "secret")
	return s
}

// TestRaceExtraction extracts while a directory is exchanged for a link that leads
// outside.
func TestRaceExtraction(t *testing.T) {
	proveRace(t)
	s := newRacedScene(t)
	before := snapshot(t, s.outside)
	refused, done := 0, 0
	start := time.Now()
	for time.Since(start) < time.Second || refused == 0 && time.Since(start) < 20*time.Second {
		err := s.raced(t, func() error {
			_, err := Unpack(context.Background(), bytes.NewReader(racedArchive(t, done+refused)), s.dest, UnpackOptions{})
			return err
		})
		switch {
		case err == nil:
			done++
		case errors.Is(err, ErrUnsafe), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrExist):
			refused++
		default:
			t.Fatalf("unexpected error: %v", err)
		}
	}
	if after := snapshot(t, s.outside); after != before {
		t.Errorf("outside has changed:\n%s\nwas\n%s", after, before)
	}
	if refused == 0 {
		t.Error("the race was never met")
	}
	t.Logf("%d extractions, %d refused", done+refused, refused)
}

// raced does something in a new destination while the swapper is at work.
func (s scene) raced(t *testing.T, do func() error) error {
	t.Helper()
	if err := os.RemoveAll(s.dest); err != nil {
		t.Fatal(err)
	}
	sw := startSwapper(t, s)
	defer sw.end()
	return do()
}

// proveRace fails the test if a naive extractor wins the race.
func proveRace(t *testing.T) {
	t.Helper()
	s := newRacedScene(t)
	before := snapshot(t, s.outside)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		s.raced(t, func() error { return naiveExtract(racedArchive(t, 0), s.dest) })
		if snapshot(t, s.outside) != before {
			return
		}
	}
	t.Fatal("the race does not even hurt a naive extractor")
}

// TestRaceRemoval removes a tree while a directory of it is exchanged for a link
// that leads outside.
func TestRaceRemoval(t *testing.T) {
	if removalRace(t, func(path string) { naiveRemove(path) }, 20*time.Second) {
		t.Fatal("the race does not even hurt a naive removal")
	}
	if !removalRace(t, func(path string) { RemoveTree(path) }, 300*time.Millisecond) {
		t.Error("files outside were removed")
	}
}

// naiveRemove looks at names, and follows what they mean by then.
func naiveRemove(path string) {
	if st, err := os.Lstat(path); err == nil && st.IsDir() {
		entries, _ := os.ReadDir(path)
		for _, e := range entries {
			naiveRemove(path + "/" + e.Name())
		}
	}
	os.Remove(path)
}

// removalRace reports whether what is outside survives remove for so long.
func removalRace(t *testing.T, remove func(path string), long time.Duration) bool {
	s := newRacedScene(t)
	for end := time.Now().Add(long); time.Now().Before(end); {
		s.raced(t, func() error {
			for i := range 20 {
				writeFile(t, fmt.Sprint(s.dest, "/d/e/", i), "")
			}
			remove(s.dest + "/d")
			return nil
		})
		for _, name := range []string{"/secret", "/e/secret"} {
			if _, err := os.Stat(s.outside + name); err != nil {
				return false
			}
		}
	}
	return true
}
