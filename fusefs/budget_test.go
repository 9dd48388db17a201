package fusefs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// counted is a mount whose round trips are counted.
type counted struct {
	*mount
	relay *chirptest.Relay
}

// delay makes what is sent without waiting one round trip.
const delay = 5 * time.Millisecond

func count(t *testing.T) *counted {
	t.Helper()
	p := chirptest.Server(t)
	if err := os.MkdirAll(filepath.Join(p.Root, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		write(t, filepath.Join(p.Root, fmt.Sprintf("a/b/f%d", i)), "small content")
	}
	if err := os.WriteFile(filepath.Join(p.Root, "big"), make([]byte, 20<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	r := chirptest.NewRelay(t, p.Addr)
	m := &counted{mounted(t, p, r.Addr, func(_ *client.Options, o *Options, _ *MountOptions) { o.TTL = 5 * time.Second }), r}
	// Every kind of connection is there, and idle, before counting begins.
	if _, err := os.ReadFile(m.path("big")); err != nil {
		t.Fatal(err)
	}
	big, err := os.Open(m.path("big"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.client.GetfileMax(t.Context(), "/a/b/f0", make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		f, err := m.client.Open(t.Context(), "/big", 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close(t.Context())
	}
	big.Close()
	time.Sleep(50 * time.Millisecond)
	r.SetDelay(delay)
	return m
}

// settle waits until what nobody awaits, such as a close, has had its round trip.
func (c *counted) settle() {
	for last := -1; last != c.relay.Turns(); time.Sleep(5 * delay) {
		last = c.relay.Turns()
	}
}

// turns is how many round trips do takes, those that nobody waits for included.
func (c *counted) turns(t *testing.T, what string, limit int, do func()) {
	t.Helper()
	before := c.relay.Turns()
	do()
	n := c.relay.Turns() - before
	if n > limit {
		t.Errorf("%s: %d round trips, want at most %d", what, n, limit)
	} else {
		t.Logf("%s: %d round trips", what, n)
	}
	c.settle()
}

// TestRoundTrips asserts the budgets.
func TestRoundTrips(t *testing.T) {
	m := count(t)
	m.turns(t, "cold stat of a/b/f1", 3, func() { stat(t, m.path("a/b/f1")) })
	m.turns(t, "warm stat of a/b/f1", 0, func() { stat(t, m.path("a/b/f1")) })
	m.turns(t, "listing with attributes of a directory of 50", 1, func() {
		for _, name := range list(t, m.path("a/b")) {
			stat(t, m.path("a/b/"+name))
			buf := make([]byte, 100)
			for _, label := range []string{"security.selinux", "system.posix_acl_access"} {
				_, _ = unix.Lgetxattr(m.path("a/b/"+name), label, buf)
			}
		}
	})
	m.turns(t, "another listing", 0, func() { list(t, m.path("a/b")) })
	m.turns(t, "names that the listing does not have", 0, func() {
		for i := range 10 {
			if _, err := os.Stat(m.path(fmt.Sprintf("a/b/missing%d", i))); err == nil {
				t.Error("it is there")
			}
		}
	})
	m.turns(t, "open, read and close of a small file that was listed", 1, func() { read(t, m.path("a/b/f2")) })
	m.turns(t, "open of a large file", 1, func() {
		fd, err := unix.Open(m.path("big"), unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		unix.Close(fd)
	})
}

// TestRoundTripsOfWriting asserts what creating and writing costs.
func TestRoundTripsOfWriting(t *testing.T) {
	m := count(t)
	list(t, m.path("a/b"))
	time.Sleep(3 * delay)
	m.turns(t, "a new small file in a listed directory", 2, func() {
		write(t, m.path("a/b/new"), "content")
	})
	f, err := os.Create(m.path("a/b/many"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m.turns(t, "5,000 writes of 4 KB", 500, func() { // the more the slower they come, but not one each
		block := make([]byte, 4096)
		for range 5_000 {
			if _, err := f.Write(block); err != nil {
				t.Fatal(err)
			}
		}
	})
	m.turns(t, "fsync after them", 2, func() {
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
	})
	m.turns(t, "close, which nobody awaits", 1, func() {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	})
	m.turns(t, "mkdir", 2, func() {
		if err := os.Mkdir(m.path("a/b/dir"), 0o755); err != nil {
			t.Fatal(err)
		}
	})
	m.turns(t, "chmod", 2, func() {
		if err := os.Chmod(m.path("a/b/new"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReadFromTheEnd opens a large file and reads from its end: nothing else is asked
// for.
func TestReadFromTheEnd(t *testing.T) {
	m := count(t)
	stat(t, m.path("big"))
	before := m.relay.Bytes(chirptest.Down)
	m.turns(t, "64 KiB from the end of a file", 3, func() {
		fd, err := unix.Open(m.path("big"), unix.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		if n, err := unix.Pread(fd, make([]byte, 64<<10), 20<<20-64<<10); n != 64<<10 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
	if n := m.relay.Bytes(chirptest.Down) - before; n > 70<<10 {
		t.Errorf("%d bytes came for 64 KiB", n)
	}
}
