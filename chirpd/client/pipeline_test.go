package client_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

const statLine = "1 2 33188 1 0 0 0 10 4096 8 1 1 1\n"

// countingConn counts writes.
type countingConn struct {
	net.Conn
	writes *atomic.Int64
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestPipelining starts reads together: they are sent before any is answered, in
// few writes, and the answers find their calls in order.
func TestPipelining(t *testing.T) {
	const calls = 16
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request() // open
		c.Send("7\n" + statLine)
		var answers strings.Builder
		for range calls {
			r, ok := c.Request().(*wire.Pread)
			if !ok {
				return
			}
			if r.Offset%3 == 0 {
				answers.WriteString("-11\n")
			} else {
				fmt.Fprintf(&answers, "4\n%04d", r.Offset)
			}
		}
		c.Send(answers.String()) // only now
		c.Request()
	})
	var writes atomic.Int64
	o := byAddress()
	o.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return countingConn{nc, &writes}, err
	}
	c := dial(t, addr, o)
	ctx := within(t)
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	before := writes.Load()
	var started []*client.Call
	bufs := make([][4]byte, calls)
	for i := range calls {
		started = append(started, f.StartPread(bufs[i][:], int64(i)))
	}
	for i, k := range started {
		n, err := k.Wait(ctx)
		if i%3 == 0 {
			fails(t, err, wire.TryAgain.Errno())
			continue
		}
		ok(t, err)
		if want := fmt.Sprintf("%04d", i); n != 4 || string(bufs[i][:]) != want {
			t.Errorf("read %d got %q (%d), want %q", i, bufs[i], n, want)
		}
	}
	if n := writes.Load() - before; n > calls/2 {
		t.Errorf("%d calls started together took %d writes", calls, n)
	}
}

// TestTurns asserts round trips, with a way so long that what is sent without
// waiting is one turn.
func TestTurns(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		relay := chirptest.NewRelay(t, p.Addr)
		c := dial(t, relay.Addr, client.Options{})
		ctx := within(t)
		const files = 50
		for i := range files {
			ok(t, c.Putfile(ctx, fmt.Sprintf("/f%d", i), 0o644, 5, strings.NewReader("hello")))
		}
		g, err := c.Open(ctx, "/f0", wire.OpenRead, 0) // connects
		ok(t, err)
		ok(t, g.Close(ctx))
		_, err = c.GetfileMax(ctx, "/f0", make([]byte, 5))
		ok(t, err)
		_, err = c.Stat(ctx, "/")
		ok(t, err)

		relay.SetDelay(40 * time.Millisecond)
		turns := func(what string, want int, do func()) {
			before := relay.Turns()
			do()
			if got := relay.Turns() - before; got != want {
				t.Errorf("%s: %d round trips, want %d", what, got, want)
			}
		}
		var f *client.File
		turns("open with its stat", 1, func() {
			f, err = c.Open(ctx, "/f1", wire.OpenRead, 0)
			ok(t, err)
		})
		turns("close, not awaited, and open", 1, func() {
			f.StartClose()
			f, err = c.Open(ctx, "/f2", wire.OpenRead, 0)
			ok(t, err)
		})
		turns("listing", 1, func() {
			_, err := c.Getlongdir(ctx, "/")
			ok(t, err)
		})
		turns("whole small files together", 1, func() {
			var calls []*client.Call
			bufs := make([][8]byte, files)
			for i := range files {
				calls = append(calls, c.StartGetfile(fmt.Sprintf("/f%d", i), bufs[i][:]))
			}
			for i, k := range calls {
				n, err := k.Wait(ctx)
				ok(t, err)
				if string(bufs[i][:n]) != "hello" {
					t.Errorf("file %d is %q", i, bufs[i][:n])
				}
			}
		})
		turns("stats together", 1, func() {
			var sts [files]wire.Stat
			var calls []*client.Call
			for i := range files {
				calls = append(calls, c.StartStat(fmt.Sprintf("/f%d", i), &sts[i]))
			}
			for i, k := range calls {
				_, err := k.Wait(ctx)
				ok(t, err)
				if sts[i].Size != 5 {
					t.Errorf("file %d is %+v", i, sts[i])
				}
			}
		})
		ok(t, f.Close(ctx))
	})
}

// TestHandshakeTurns says what a connection costs: method and challenge, answer.
func TestHandshakeTurns(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		relay := chirptest.NewRelay(t, p.Addr)
		relay.SetDelay(40 * time.Millisecond)
		c := dial(t, relay.Addr, client.Options{})
		_, err := c.Stat(within(t), "/")
		ok(t, err)
		if n := relay.Turns(); n != 3 {
			t.Errorf("connecting and one stat took %d round trips after TCP's, want 3", n)
		}
	})
}

// slowWriter blocks until it is let go.
type slowWriter struct {
	entered chan struct{}
	release chan struct{}
	bytes.Buffer
}

func (w *slowWriter) Write(p []byte) (int, error) {
	if w.entered != nil {
		close(w.entered)
		w.entered = nil
		<-w.release
	}
	return w.Buffer.Write(p)
}

// TestSlowWriter: who takes his time with one file holds nobody up, and is not taken
// for a server that has stalled.
func TestSlowWriter(t *testing.T) {
	t.Parallel()
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		c := dial(t, p.Addr, client.Options{Stall: 100 * time.Millisecond})
		ctx := within(t)
		data := strings.Repeat("x", 8<<20)
		ok(t, c.Putfile(ctx, "/big", 0o644, int64(len(data)), strings.NewReader(data)))
		entered := make(chan struct{})
		w := &slowWriter{entered: entered, release: make(chan struct{})}
		done := make(chan error)
		go func() {
			_, err := c.Getfile(ctx, "/big", w)
			done <- err
		}()
		<-entered
		for range 100 {
			_, err := c.Stat(ctx, "/big")
			ok(t, err)
		}
		time.Sleep(250 * time.Millisecond)
		close(w.release)
		ok(t, <-done)
		if w.Len() != len(data) {
			t.Errorf("got %d bytes of %d", w.Len(), len(data))
		}
	})
}
