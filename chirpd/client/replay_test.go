package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// failing is a scripted server that serves everything, except that on its first
// connections it does something bad when a command comes.
type failing struct {
	victim string // the command
	end    bool   // end the connection; otherwise say nothing more
	times  int    // on so many connections

	mu   sync.Mutex
	seen []string // commands, with the number of the connection
}

func (s *failing) serve(c *chirptest.ScriptedConn) {
	for {
		r := c.Request()
		if r == nil {
			return
		}
		if d, ok := r.(wire.WithData); ok {
			_, _ = io.CopyN(io.Discard, c.R, d.DataLength())
		}
		s.mu.Lock()
		s.seen = append(s.seen, fmt.Sprintf("%d:%s", c.Number, r.Command()))
		s.mu.Unlock()
		if r.Command() == s.victim && c.Number <= s.times {
			if !s.end {
				c.Request()
			}
			return
		}
		s.answer(c, r)
	}
}

func (s *failing) answer(c *chirptest.ScriptedConn, r wire.Request) {
	switch r := r.(type) {
	case *wire.Open:
		c.Send("7\n" + statLine)
	case *wire.StatPath, *wire.Lstat, *wire.Fstat:
		c.Send("0\n" + statLine)
	case *wire.Pread:
		c.Send("4\nabcd")
	case *wire.Pwrite:
		c.Send(fmt.Sprintf("%d\n", r.Length))
	case *wire.Getdir, *wire.Getlongdir, *wire.Getacl:
		c.Send("0\n\n")
	case *wire.Getfile:
		c.Send("4\nabcd")
	case *wire.Putfile:
		c.Send("0\n")
		_, _ = io.CopyN(io.Discard, c.R, r.Length)
		c.Send(fmt.Sprintf("%d\n", r.Length))
	case *wire.Hash:
		c.Send("4\nabcd")
	default:
		c.Send("0\n")
	}
}

func (s *failing) count(command string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, seen := range s.seen {
		if strings.HasSuffix(seen, ":"+command) {
			n++
		}
	}
	return n
}

// TestReplays is the table of what is sent again when a connection is lost under a
// call that may have been executed: the package's rules.
func TestReplays(t *testing.T) {
	type ctx = context.Context
	open := func(c *client.Client, flags wire.OpenFlags) *client.File {
		f, err := c.Open(within(t), "/f", flags, 0o644)
		ok(t, err)
		return f
	}
	for _, r := range []struct {
		victim         string
		ended, stalled bool // sent again after the server ended the connection, or went silent
		do             func(ctx, *client.Client) error
	}{
		{"stat", true, true, func(ctx ctx, c *client.Client) error { _, err := c.Stat(ctx, "/f"); return err }},
		{"getlongdir", true, true, func(ctx ctx, c *client.Client) error { _, err := c.Getlongdir(ctx, "/"); return err }},
		{"getacl", true, true, func(ctx ctx, c *client.Client) error { _, err := c.Getacl(ctx, "/"); return err }},
		{"getfile", true, true, func(ctx ctx, c *client.Client) error {
			_, err := c.GetfileMax(ctx, "/f", make([]byte, 9))
			return err
		}},
		{"getfile", true, true, func(ctx ctx, c *client.Client) error { _, err := c.Getfile(ctx, "/f", io.Discard); return err }},
		{"hash", true, true, func(ctx ctx, c *client.Client) error { _, err := c.Hash(ctx, "md5", "/f"); return err }},
		{"chmod", false, false, func(ctx ctx, c *client.Client) error { return c.Chmod(ctx, "/f", 0o600) }},
		{"truncate", false, false, func(ctx ctx, c *client.Client) error { return c.Truncate(ctx, "/f", 1) }},
		{"utime", false, false, func(ctx ctx, c *client.Client) error {
			return c.Utime(ctx, "/f", time.Unix(1, 0), time.Unix(1, 0))
		}},
		{"setacl", false, false, func(ctx ctx, c *client.Client) error { return c.Setacl(ctx, "/", "unix:x", "r") }},
		{"setxattr", false, false, func(ctx ctx, c *client.Client) error { return c.Setxattr(ctx, "/f", "user.a", nil, 0) }},
		{"putfile", false, false, func(ctx ctx, c *client.Client) error {
			return c.Putfile(ctx, "/f", 0o644, 1, strings.NewReader("1"))
		}},
		{"mkdir", false, false, func(ctx ctx, c *client.Client) error { return c.Mkdir(ctx, "/d", 0o755) }},
		{"rmdir", false, false, func(ctx ctx, c *client.Client) error { return c.Rmdir(ctx, "/d") }},
		{"rmall", false, false, func(ctx ctx, c *client.Client) error { return c.Rmall(ctx, "/d") }},
		{"unlink", false, false, func(ctx ctx, c *client.Client) error { return c.Unlink(ctx, "/f") }},
		{"rename", false, false, func(ctx ctx, c *client.Client) error { return c.Rename(ctx, "/f", "/g") }},
		{"link", false, false, func(ctx ctx, c *client.Client) error { return c.Link(ctx, "/f", "/g") }},
		{"symlink", false, false, func(ctx ctx, c *client.Client) error { return c.Symlink(ctx, "f", "/g") }},
		{"ticket_register", false, false, func(ctx ctx, c *client.Client) error {
			return c.TicketRegister(ctx, "self", time.Hour, []byte("key"))
		}},
		{"ticket_delete", false, false, func(ctx ctx, c *client.Client) error { return c.TicketDelete(ctx, "0") }},
		{"open", true, true, func(ctx ctx, c *client.Client) error {
			_, err := c.Open(ctx, "/f", readWrite, 0)
			return err
		}},
		{"open", true, false, func(ctx ctx, c *client.Client) error {
			_, err := c.Open(ctx, "/f", create, 0)
			return err
		}},
		{"open", false, false, func(ctx ctx, c *client.Client) error {
			_, err := c.Open(ctx, "/f", readWrite|wire.OpenTruncate, 0)
			return err
		}},
		{"open", false, false, func(ctx ctx, c *client.Client) error {
			_, err := c.Open(ctx, "/f", create|wire.OpenExclude, 0)
			return err
		}},
		{"pread", true, true, func(ctx ctx, c *client.Client) error {
			_, err := open(c, readWrite).Pread(ctx, make([]byte, 9), 0)
			return err
		}},
		{"fsync", true, true, func(ctx ctx, c *client.Client) error { return open(c, readWrite).Fsync(ctx) }},
		{"pwrite", true, false, func(ctx ctx, c *client.Client) error {
			_, err := open(c, readWrite).Pwrite(ctx, []byte("x"), 0)
			return err
		}},
		{"pwrite", false, false, func(ctx ctx, c *client.Client) error { // appends
			_, err := open(c, wire.OpenWrite|wire.OpenAppend).Pwrite(ctx, []byte("x"), 0)
			return err
		}},
		{"pwrite", false, false, func(ctx ctx, c *client.Client) error { // may overtake the other file's
			open(c, readWrite)
			_, err := open(c, readWrite).Pwrite(ctx, []byte("x"), 0)
			return err
		}},
		{"pwrite", true, false, func(ctx ctx, c *client.Client) error { // the other one only reads
			open(c, wire.OpenRead)
			_, err := open(c, readWrite).Pwrite(ctx, []byte("x"), 0)
			return err
		}},
		{"ftruncate", false, false, func(ctx ctx, c *client.Client) error { return open(c, readWrite).Ftruncate(ctx, 1) }},
		{"close", false, false, func(ctx ctx, c *client.Client) error { // and yet it is closed
			if err := open(c, readWrite).Close(ctx); err != nil {
				return err
			}
			return &wire.Error{Op: "close", Code: wire.Unknown}
		}},
	} {
		for _, end := range []bool{true, false} {
			again := end && r.ended || !end && r.stalled
			t.Run(fmt.Sprintf("%s/end=%v/again=%v", r.victim, end, again), func(t *testing.T) {
				t.Parallel()
				// Whichever of the connections it is.
				s := &failing{victim: r.victim, end: end, times: 1}
				if r.victim == "pwrite" {
					s.times = 2
				}
				o := byAddress()
				o.Stall = time.Minute
				if !end {
					o.Stall = 100 * time.Millisecond
				}
				c := dial(t, chirptest.Scripted(t, s.serve), o.WithSettle(time.Millisecond))
				if slow := strings.Contains("hash putfile rmall fsync close", r.victim); slow && !end {
					t.Skip("a slow call's limit is ten times as long; the rule is the same")
				}
				err := r.do(within(t), c)
				if again {
					ok(t, err)
				} else {
					fails(t, err, syscall.EIO)
				}
				if n := s.count(r.victim); again != (n > 1) {
					t.Errorf("%q was sent %d times: %q", r.victim, n, s.seen)
				}
			})
		}
	}
}

// TestUnsent: what did not leave is sent on the next connection, in order, be it
// never so dangerous to repeat.
func TestUnsent(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	queued := make(gate)
	rest := &failing{}
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		if c.Number == 1 {
			c.Request() // open
			c.Send("7\n" + statLine)
			c.Request() // the write, whose data fills the way
			queued.pass()
			return
		}
		for {
			r := c.Request()
			if r == nil {
				return
			}
			mu.Lock()
			seen = append(seen, r.Command())
			mu.Unlock()
			if d, ok := r.(wire.WithData); ok {
				_, _ = io.CopyN(io.Discard, c.R, d.DataLength())
			}
			rest.answer(c, r)
		}
	})
	o := byAddress()
	o.Conns = 1
	c := dial(t, addr, o.WithSettle(time.Millisecond))
	ctx := within(t)
	f, err := c.Open(ctx, "/f", readWrite, 0)
	ok(t, err)
	write := f.StartPwrite(make([]byte, wire.MaxData), 0)
	opened := make(chan error)
	go func() {
		_, err := c.Open(ctx, "/g", create|wire.OpenExclude, 0o644)
		opened <- err
	}()
	time.Sleep(50 * time.Millisecond) // the open is in the queue behind the write
	queued.open()
	_, err = write.Wait(ctx)
	ok(t, err)
	ok(t, <-opened)
	mu.Lock()
	defer mu.Unlock()
	if got := fmt.Sprint(seen); got != "[open pwrite open]" {
		t.Errorf("on the second connection came %s", got)
	}
}

// TestPoison: a request that ends every connection is not sent for ever, and does not
// take others with it.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := &failing{victim: "getacl", end: true, times: 1000}
	c := dial(t, chirptest.Scripted(t, s.serve), byAddress())
	stats := make(chan error)
	go func() {
		_, err := c.Stat(within(t), "/")
		stats <- err
	}()
	_, err := c.Getacl(within(t), "/")
	fails(t, err, syscall.EIO)
	ok(t, <-stats)
	if n := s.count("getacl"); n > 10 {
		t.Errorf("it was sent %d times", n)
	}
}

// TestGetfileResumes only as long as its writer got nothing.
func TestGetfileResumes(t *testing.T) {
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		switch c.Number {
		case 1:
			c.Send("6\n")
		case 2:
			c.Send("6\nabc")
		default:
			c.Send("6\nabcdef")
			c.Request()
		}
	})
	c := dial(t, addr, byAddress())
	var b strings.Builder
	_, err := c.Getfile(within(t), "/f", &b)
	fails(t, err, syscall.EIO)
	if b.String() != "abc" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("writer got %q, error %v", b.String(), err)
	}
	b.Reset()
	_, err = c.Getfile(within(t), "/f", &b)
	ok(t, err)
	if b.String() != "abcdef" {
		t.Errorf("writer got %q", b.String())
	}
}

// TestSettles: before a write is sent again, the server has time to finish with the
// first copy.
func TestSettles(t *testing.T) {
	const settle = 100 * time.Millisecond
	var mu sync.Mutex
	var ended, back time.Time
	rest := &failing{}
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		if c.Number == 2 {
			mu.Lock()
			back = time.Now()
			mu.Unlock()
		}
		for r := c.Request(); r != nil; r = c.Request() {
			if r.Command() == "pwrite" && c.Number == 1 {
				mu.Lock()
				ended = time.Now()
				mu.Unlock()
				return
			}
			if d, ok := r.(wire.WithData); ok {
				_, _ = io.CopyN(io.Discard, c.R, d.DataLength())
			}
			rest.answer(c, r)
		}
	})
	c := dial(t, addr, byAddress().WithSettle(settle))
	f, err := c.Open(within(t), "/f", readWrite, 0)
	ok(t, err)
	_, err = f.Pwrite(within(t), []byte("x"), 0)
	ok(t, err)
	mu.Lock()
	defer mu.Unlock()
	if waited := back.Sub(ended); waited < settle {
		t.Errorf("the client was back after %v", waited)
	}
}
