package client_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// gate lets a scripted server go on step by step.
type gate chan struct{}

func (g gate) open() { g <- struct{}{} }
func (g gate) pass() { <-g }

// TestCancelledRead gives up reads before and in the middle of their answers. The
// caller has his buffer back at once, and later calls get their own answers.
func TestCancelledRead(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	begin, half, rest := make(gate), make(gate), make(gate)
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request() // open
		c.Send("7\n" + statLine)
		c.Request() // the first read
		begin.pass()
		c.Send("1048576\n" + strings.Repeat("a", size))
		c.Request() // the second
		c.Send("1048576\n" + strings.Repeat("b", size/2))
		half.open()
		rest.pass()
		c.Send(strings.Repeat("b", size/2))
		c.Request() // the third
		c.Send("3\nccc")
		c.Request()
	})
	c := dial(t, addr, byAddress())
	ctx := within(t)
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	p := make([]byte, size)
	mine := bytes.Repeat([]byte("m"), size)

	soon, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	_, err = f.Pread(soon, p, 0)
	fails(t, err, syscall.EINTR)
	copy(p, mine)
	begin.open()

	soon, cancel = context.WithCancel(ctx)
	go func() {
		half.pass()
		cancel()
	}()
	_, err = f.Pread(soon, p, 0)
	fails(t, err, syscall.EINTR)
	copy(p, mine)
	rest.open()

	q := make([]byte, 10)
	n, err := f.Pread(ctx, q, 0)
	ok(t, err)
	if string(q[:n]) != "ccc" {
		t.Errorf("the call after those got %q", q[:n])
	}
	if !bytes.Equal(p, mine) {
		t.Error("a late answer was written into memory that the caller had back")
	}
}

// TestCancelledWrite gives up a large write that the server does not take, and
// scribbles over the buffer. What arrives is what was written.
func TestCancelledWrite(t *testing.T) {
	t.Parallel()
	const size = wire.MaxData
	read := make(gate)
	got := make(chan []byte, 2)
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request() // open
		c.Send("7\n" + statLine)
		read.pass()
		for range 2 {
			if c.Request() == nil {
				return
			}
			b := make([]byte, size)
			_, _ = io.ReadFull(c.R, b)
			got <- b
			c.Send("16777216\n")
		}
		c.Request() // fsync
		c.Send("0\n")
		c.Request()
	})
	c := dial(t, addr, byAddress())
	ctx := within(t)
	f, err := c.Open(ctx, "/f", create, 0)
	ok(t, err)
	p := bytes.Repeat([]byte("w"), size)

	// The first is being written when it is given up, the second is in the queue.
	for range 2 {
		soon, cancel := context.WithCancel(ctx)
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err = f.Pwrite(soon, p, 0)
		fails(t, err, syscall.EINTR)
	}
	want := bytes.Clone(p)
	copy(p, bytes.Repeat([]byte("x"), size))
	read.open()
	ok(t, f.Fsync(ctx))
	for range 2 {
		if !bytes.Equal(<-got, want) {
			t.Error("the server got something else than what was written")
		}
	}
}

// TestCancelledOpen gives up an open: the file that the server opens all the same is
// closed again.
func TestCancelledOpen(t *testing.T) {
	asked, answer := make(gate), make(gate)
	closed := make(chan int64, 1)
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		asked.open()
		answer.pass()
		c.Send("42\n" + statLine)
		if r, ok := c.Request().(*wire.Close); ok {
			closed <- r.FD
		}
	})
	c := dial(t, addr, byAddress())
	soon, cancel := context.WithCancel(within(t))
	go func() {
		asked.pass()
		cancel()
	}()
	_, err := c.Open(soon, "/f", wire.OpenRead, 0)
	fails(t, err, syscall.EINTR)
	answer.open()
	if fd := <-closed; fd != 42 {
		t.Errorf("descriptor %d was closed", fd)
	}
}

// TestCancelledWhileAway gives up calls that wait for a server that is not there.
func TestCancelledWhileAway(t *testing.T) {
	t.Parallel()
	relay := chirptest.NewRelay(t, "127.0.0.1:1")
	relay.Refuse()
	c := dial(t, relay.Addr, client.Options{})
	soon, cancel := context.WithTimeout(within(t), 50*time.Millisecond)
	defer cancel()
	_, err := c.Stat(soon, "/")
	fails(t, err, syscall.ETIMEDOUT)
	_, err = c.Getfile(soon, "/", io.Discard)
	fails(t, err, syscall.ETIMEDOUT)
	_, err = c.Open(soon, "/", wire.OpenRead, 0)
	fails(t, err, syscall.ETIMEDOUT)
}

// TestCancelledTransfer gives up a transfer in the middle: reader and writer are left
// alone from then on.
func TestCancelledTransfer(t *testing.T) {
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		switch c.Request().(type) {
		case *wire.Getfile:
			c.Send("100\nabc")
		case *wire.Putfile:
			c.Send("0\n")
		}
		c.Request() // never answered
	})
	c := dial(t, addr, byAddress())
	soon, cancel := context.WithCancel(within(t))
	_, err := c.Getfile(soon, "/f", writerFunc(func(p []byte) (int, error) {
		cancel()
		return len(p), nil
	}))
	fails(t, err, syscall.EINTR)

	soon, cancel = context.WithCancel(within(t))
	err = c.Putfile(soon, "/f", 0o644, 10, readerFunc(func(p []byte) (int, error) {
		cancel()
		return copy(p, "abc"), nil
	}))
	fails(t, err, syscall.EINTR)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
