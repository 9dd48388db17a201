package chirpd_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/wire"
)

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	good := chirpd.Config{Root: dir, Verifiers: []auth.Verifier{trusting{}}}
	for name, change := range map[string]func(*chirpd.Config){
		"no root":               func(c *chirpd.Config) { c.Root = "" },
		"root that is missing":  func(c *chirpd.Config) { c.Root = filepath.Join(dir, "nope") },
		"nobody could come in":  func(c *chirpd.Config) { c.Verifiers = nil },
		"tickets without state": func(c *chirpd.Config) { c.Tickets = true },
		"a ticket verifier":     func(c *chirpd.Config) { c.Verifiers = append(c.Verifiers, auth.TicketVerifier(nil)) },
		"default ACL":           func(c *chirpd.Config) { c.DefaultACL = "unix:x rwz\n" },
		"time that is negative": func(c *chirpd.Config) { c.Catalog.Interval = -1 },
		"state that is a file":  func(c *chirpd.Config) { c.Tickets, c.StateDir = true, "/dev/null" },
	} {
		c := good
		change(&c)
		if s, err := chirpd.New(c); err == nil {
			s.Close()
			t.Errorf("%s: made a server", name)
		}
	}
}

// TestBuiltinACL checks a fresh export: its owner and the server's user may do
// everything, others nothing, and nothing is written into it.
func TestBuiltinACL(t *testing.T) {
	root := t.TempDir()
	users := []string{chirptest.User(t)}
	if os.Getuid() == 0 {
		if err := os.Chown(root, 1, -1); err != nil {
			t.Fatal(err)
		}
		users = append(users, "daemon")
	}
	s := serve(t, func(c *chirpd.Config) { c.DefaultACL, c.Root = "", root })
	for _, user := range users {
		p := s.as(user)
		p.want("0", "mkdir /d 493")
		p.want("0", "mkdir /d/e 493")
		p.want("0", "rmall /d")
	}
	s.as("somebody-else").want("-2", "stat /")
	if names, err := os.ReadDir(root); err != nil || len(names) > 0 {
		t.Errorf("the export has %v (%v)", names, err)
	}
}

func TestReadOnly(t *testing.T) {
	s := serve(t, func(c *chirpd.Config) { c.ReadOnly = true })
	s.write("d/f", "hello")
	p := s.as("owner")
	for _, request := range []string{
		"open /d/f w 0", "open /d/new wc 420", "putfile /d/g 420 0", "unlink /d/f", "mkdir /e 493", "rmdir /d", "rmall /d",
		"rename /d/f /g", "link /d/f /g", "symlink x /y", "chmod /d/f 511", "truncate /d/f 0", "utime /d/f 1 1",
		"setacl / unix:x rl", "access /d/f 2", "putstream /d/f",
	} {
		p.want("-2", "%s", request)
		if strings.HasPrefix(request, "putstream") {
			p.ended()
		}
	}
	p = s.as("owner")
	p.want("5", "getfile /d/f")
	if got := p.bytes(5); got != "hello" {
		t.Errorf("read %q", got)
	}
}

// TestShutdown lets a request finish whose data is still under way, answers what was
// asked before, and refuses new clients.
func TestShutdown(t *testing.T) {
	s := serve(t)
	busy, idle, half := s.as("owner"), s.as("owner"), s.as("owner")
	busy.ask("open /f wc 420")
	busy.line()
	busy.send("pwrite 0 10 0\n01234")
	half.send("stat /") // never ends
	for idle.ask("stat /f") != "0" || !strings.Contains(idle.line(), " 0 4096 ") {
	}
	done := make(chan error, 1)
	go func() { done <- s.server.Shutdown(t.Context()) }()
	idle.ended()
	half.ended()
	if c, err := net.Dial("tcp", s.addr); err == nil {
		if _, err := io.ReadAll(c); err == nil {
			t.Log("a connection was taken and closed")
		}
		c.Close()
	}
	select {
	case err := <-done:
		t.Fatalf("shut down (%v) before the write was finished", err)
	case <-time.After(50 * time.Millisecond):
	}
	busy.send("56789")
	if got := busy.line(); got != "10" {
		t.Fatalf("the write was answered %q", got)
	}
	busy.ended()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := s.read("f"); got != "0123456789" {
		t.Errorf("the file has %q", got)
	}
}

// TestShutdownRunsOut cuts off what does not end in time.
func TestShutdownRunsOut(t *testing.T) {
	s := serve(t)
	p := s.as("owner")
	p.ask("open /f wc 420")
	p.line()
	p.send("pwrite 0 10 0\n01234")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != context.DeadlineExceeded {
		t.Errorf("shut down with %v", err)
	}
	p.ended()
}

// TestServeEndsWithContext ends a server by the context of Serve.
func TestServeEndsWithContext(t *testing.T) {
	s, err := chirpd.New(chirpd.Config{Root: t.TempDir(), Verifiers: []auth.Verifier{trusting{}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "nonsense\n")
	if _, err := io.ReadFull(c, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("served with %v", err)
	}
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("the connection went on with %q", b)
	}
	if err := s.Serve(t.Context(), l); err == nil {
		t.Error("a closed server serves")
	}
}

func TestLimits(t *testing.T) {
	s := serve(t, func(c *chirpd.Config) { c.MaxOpen, c.MaxPerAddress = 3, 2 })
	s.write("f", "x")
	p := s.as("owner")
	for fd := range 3 {
		p.want(fmt.Sprint(fd), "open /f r 0")
		p.line()
	}
	p.want("-9", "open /f r 0")
	p.want("0", "close 1")
	p.want("1", "open /f r 0")
	p.line()

	s.as("owner")
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, _ := io.ReadAll(c); len(b) > 0 {
		t.Errorf("a third connection was answered %q", b)
	}
	p.Close()
	for { // the place is free as soon as the server has seen it
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "no\n")
		n, _ := io.ReadFull(c, make([]byte, 3))
		c.Close()
		if n == 3 {
			break
		}
	}
}

// TestBindsAgain starts a server at once where one with clients has just ended.
func TestBindsAgain(t *testing.T) {
	s := serve(t)
	for range 2 {
		s.as("owner").want("0", "mkdir /d%d 493", time.Now().UnixNano())
	}
	s.server.Close()
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// TestLongLines takes paths longer than the real server's limit, and keeps in step when
// a line is longer than ours.
func TestLongLines(t *testing.T) {
	s := serve(t)
	p := s.as("owner")
	dir := ""
	for range 10 {
		dir += "/" + strings.Repeat("d", 200)
		p.want("0", "mkdir %s 493", dir)
	}
	p.want("-3", "stat %s/f", dir)
	p.want("-5", "stat /%s", strings.Repeat("x", wire.MaxLine))
	p.want("-5", "stat /%s\nstat /nope", strings.Repeat("x", 10*wire.MaxLine))
	if got := p.line(); got != "-3" {
		t.Errorf("after a long line: %s", got)
	}
	p.want("0", "rmall /%s", strings.Repeat("d", 200))
}

// TestTimeouts ends clients that do not authenticate, ask nothing, or stop in the
// middle of a transfer, in either direction.
func TestTimeouts(t *testing.T) {
	const short = 100 * time.Millisecond
	t.Run("authentication", func(t *testing.T) {
		s := serve(t, func(c *chirpd.Config) { c.AuthTimeout = short })
		c, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if b, err := io.ReadAll(c); len(b) > 0 || err != nil {
			t.Errorf("got %q, %v", b, err)
		}
	})
	t.Run("idle", func(t *testing.T) {
		s := serve(t, func(c *chirpd.Config) { c.IdleTimeout = short })
		p := s.as("owner")
		p.want("0", "mkdir /d 493")
		p.ended()
	})
	t.Run("sending", func(t *testing.T) {
		s := serve(t, func(c *chirpd.Config) { c.StallTimeout = short })
		p := s.as("owner")
		p.ask("open /f wc 420")
		p.line()
		p.send("pwrite 0 5 0\nab")
		p.ended()
	})
	t.Run("receiving", func(t *testing.T) {
		s := serve(t, func(c *chirpd.Config) { c.StallTimeout = short })
		s.write("f", "")
		if err := os.Truncate(s.path("f"), 64<<20); err != nil {
			t.Fatal(err)
		}
		p := s.as("owner")
		p.send("getfile /f\n")
		time.Sleep(10 * short) // more than the sockets hold is on its way
		n, _ := io.Copy(io.Discard, p.in)
		if n >= 64<<20 {
			t.Error("the whole file came, so nothing was cut off")
		}
	})
}
