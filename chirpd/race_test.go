package chirpd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arena is a tree in which x is, in turn, a directory that unix:other may use and a link
// to one that it may not: private, in the export, or one outside of it.
type arena struct {
	*site
	outside string
	stop    chan struct{}
	wg      sync.WaitGroup
}

func newArena(t *testing.T) *arena {
	s := serve(t)
	a := &arena{site: s, outside: t.TempDir(), stop: make(chan struct{})}
	s.write("x/f", "mine")
	s.write("x/.__acl", "unix:other rwlda\n")
	s.write("private/f", "secret")
	s.write("private/.__acl", "unix:owner rwlda\n")
	for name, text := range map[string]string{"f": "outside", ".__acl": "unix:other rwlda\n"} {
		if err := os.WriteFile(filepath.Join(a.outside, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	relative, err := filepath.Rel(s.root, a.outside)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"to-private": "private", "to-outside": relative} {
		if err := os.Symlink(target, s.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	a.wg.Go(a.swap)
	t.Cleanup(func() {
		close(a.stop)
		a.wg.Wait()
	})
	return a
}

// swap exchanges x with each of the links, over and over.
func (a *arena) swap() {
	for {
		for _, link := range []string{"to-private", "to-outside"} {
			for range 2 {
				if err := unix.Renameat2(unix.AT_FDCWD, a.path("x"), unix.AT_FDCWD, a.path(link), unix.RENAME_EXCHANGE); err != nil {
					a.t.Errorf("swapping: %v", err)
					return
				}
			}
		}
		select {
		case <-a.stop:
			return
		default:
		}
	}
}

// naive is what a server does that checks by path and opens by path.
func (a *arena) naive() (content string) {
	acl, err := os.ReadFile(a.path("x/.__acl"))
	if err != nil || !strings.Contains(string(acl), "unix:other") {
		return ""
	}
	b, _ := os.ReadFile(a.path("x/f"))
	return string(b)
}

// TestSwaps asks for a file in x by all sorts of requests while x is swapped. Only what
// lies in the allowed directory may come back or change. The naive way, beside it, has to
// leak: else the attack proves nothing.
func TestSwaps(t *testing.T) {
	a := newArena(t)
	leaked := map[string]int{}
	var done sync.WaitGroup
	for c := range 2 {
		p := a.as("other")
		done.Go(func() {
			for i := range 100 {
				a.attack(p, fmt.Sprintf("n%d.%d", c, i))
			}
		})
	}
	deadline := time.Now().Add(20 * time.Second)
	for leaked["secret"] == 0 || leaked["outside"] == 0 {
		leaked[a.naive()]++
		if time.Now().After(deadline) {
			t.Fatalf("the attack does not work even without the defence: %v", leaked)
		}
	}
	done.Wait()
	for dir, want := range map[string]string{a.path("private"): "secret", a.outside: "outside"} {
		names, err := os.ReadDir(dir)
		if err != nil || len(names) != 2 {
			t.Errorf("%s has %v (%v)", dir, names, err)
		}
		b, err := os.ReadFile(dir + "/f")
		info, err2 := os.Stat(dir + "/f")
		if err != nil || err2 != nil || string(b) != want || info.Mode() != 0o644 {
			t.Errorf("%s/f has %q and mode %v (%v, %v)", dir, b, info.Mode(), err, err2)
		}
	}
	t.Logf("leaked without the defence: %v", leaked)
}

func (a *arena) attack(p *peer, name string) {
	if reply := p.ask("getfile /x/f"); reply != "4" && !strings.HasPrefix(reply, "-") {
		p.t.Errorf("getfile gives %s bytes", reply)
		n, _ := strconv.Atoi(reply)
		p.bytes(n)
	} else if reply == "4" {
		p.bytes(4)
	}
	if fd := p.ask("open /x/f r 0"); !strings.HasPrefix(fd, "-") {
		if st := strings.Fields(p.line()); st[7] != "4" {
			p.t.Errorf("opened a file of %s bytes", st[7])
		}
		p.ask("close %s", fd)
	}
	if p.ask("stat /x/f") == "0" {
		if st := strings.Fields(p.line()); st[7] != "4" {
			p.t.Errorf("stat of a file of %s bytes", st[7])
		}
	}
	if p.ask("getdir /x") == "0" {
		for line := p.line(); line != ""; line = p.line() {
			if line == "private" {
				p.t.Error("the root was listed")
			}
		}
	}
	if p.ask("putfile /x/%s 420 1", name) == "0" {
		p.send("n")
		p.line()
	}
	p.ask("mkdir /x/%s.d 493", name)
	p.ask("rename /x/%s /x/%s.e", name, name)
	p.ask("chmod /x/f 420")
	p.ask("rmall /x/%s.d", name)
	p.ask("unlink /x/%s.e", name)
}
