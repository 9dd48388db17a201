package client_test

import (
	"bytes"
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

// TestStalledServer is case 31: while the server is stopped reads fail within the
// limit, and afterwards they work again.
func TestStalledServer(t *testing.T) {
	t.Parallel()
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		relay := chirptest.NewRelay(t, p.Addr)
		pause, resume := relay.Pause, relay.Resume
		addr := relay.Addr
		if p.Real { // the thing itself
			pause, resume, addr = p.Pause, p.Resume, p.Addr
		}
		c := dial(t, addr, client.Options{Timeout: 300 * time.Millisecond})
		ctx := within(t)
		put(t, c, "/f", "content")
		f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
		ok(t, err)
		pause()
		one, two := f.StartPread(make([]byte, 9), 0), f.StartPread(make([]byte, 9), 0)
		_, err = one.Wait(ctx)
		fails(t, err, syscall.ETIMEDOUT)
		_, err = two.Wait(ctx)
		fails(t, err, syscall.ETIMEDOUT)
		_, err = c.Stat(ctx, "/f")
		fails(t, err, syscall.ETIMEDOUT)
		resume()
		b := make([]byte, 100)
		n, err := f.Pread(ctx, b, 0)
		for err != nil && ctx.Err() == nil { // on a busy machine it needs more than the limit
			n, err = f.Pread(ctx, b, 0)
		}
		ok(t, err)
		if string(b[:n]) != "content" {
			t.Errorf("read %q afterwards", b[:n])
		}
	})
}

// TestWaitsForServer: a server that is away for less than Timeout is waited for.
func TestWaitsForServer(t *testing.T) {
	t.Parallel()
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		c := dial(t, p.Addr, client.Options{})
		ctx := within(t)
		put(t, c, "/f", "content")
		f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
		ok(t, err)
		p.Stop()
		var calls []*client.Call
		var bufs [20][7]byte
		for i := range bufs {
			calls = append(calls, f.StartPread(bufs[i][:], 0))
		}
		st := c.StartStat("/f", new(wire.Stat))
		time.Sleep(50 * time.Millisecond)
		p.Start()
		for i, k := range calls {
			_, err := k.Wait(ctx)
			ok(t, err)
			if string(bufs[i][:]) != "content" {
				t.Errorf("read %q", bufs[i])
			}
		}
		_, err = st.Wait(ctx)
		ok(t, err)
	})
}

// TestLostWays has the ways in which a connection dies unseen.
func TestLostWays(t *testing.T) {
	t.Parallel()
	p := chirptest.Server(t)
	for _, w := range []struct {
		name string
		do   func(r *chirptest.Relay)
	}{
		{"reset while idle", (*chirptest.Relay).Cut}, // case 32
		{"half open", (*chirptest.Relay).Hang},
		{"replies vanish", func(r *chirptest.Relay) {
			r.Deafen(chirptest.Down, true)
			time.AfterFunc(300*time.Millisecond, func() { r.Deafen(chirptest.Down, false) })
		}},
		{"requests vanish", func(r *chirptest.Relay) {
			r.Deafen(chirptest.Up, true)
			time.AfterFunc(300*time.Millisecond, func() { r.Deafen(chirptest.Up, false) })
		}},
	} {
		t.Run(w.name, func(t *testing.T) {
			relay := chirptest.NewRelay(t, p.Addr)
			c := dial(t, relay.Addr, client.Options{Stall: 100 * time.Millisecond})
			ctx := within(t)
			put(t, c, "/f", "content")
			f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
			ok(t, err)
			_, err = c.Stat(ctx, "/f")
			ok(t, err)
			w.do(relay)
			if got := read(t, f); got != "content" {
				t.Errorf("read %q", got)
			}
			_, err = c.Stat(ctx, "/f")
			ok(t, err)
			_, err = c.Getfile(ctx, "/f", io.Discard)
			ok(t, err)
		})
	}
}

// TestCutEverywhere cuts one connection of a conversation after so and so many
// bytes, in both directions. Whatever the place, reads are right; what must not run
// twice did not.
func TestCutEverywhere(t *testing.T) {
	for _, w := range []chirptest.Way{chirptest.Up, chirptest.Down} {
		t.Run(fmt.Sprintf("ours/way=%d", w), func(t *testing.T) {
			t.Parallel()
			cutEverywhere(t, chirptest.Server(t), w, 3)
		})
		t.Run(fmt.Sprintf("real/way=%d", w), func(t *testing.T) {
			t.Parallel()
			cutEverywhere(t, chirptest.RealServer(t), w, 41) // a round takes long
		})
	}
}

func cutEverywhere(t *testing.T, p *chirptest.Peer, w chirptest.Way, step int64) {
	direct := dial(t, p.Addr, client.Options{})
	put(t, direct, "/f", "content")
	relay := chirptest.NewRelay(t, p.Addr)
	rounds, unknown := 0, 0
	for n := int64(1); ; n += step {
		dir := fmt.Sprintf("/d%d", n)
		relay.CutAfter(w, n)
		c := client.New(relay.Addr, client.Options{Timeout: 10 * time.Second, Conns: 1}.WithSettle(10*time.Millisecond))
		if !conversation(t, c, dir, n) {
			unknown++
		}
		ok(t, c.Close())
		if t.Failed() {
			return
		}
		rounds++
		if relay.Cuts(w) { // n is more than there is to say
			relay.CutAfter(w, 0)
			break
		}
	}
	t.Logf("cut at %d places; %d times it is not known whether the directory was made", rounds-1, unknown)
	if rounds < 5 || unknown == 0 && w == chirptest.Up && !p.Real {
		t.Error("that is not much of a test")
	}
}

// conversation reads and changes, and reports whether all outcomes are known.
func conversation(t *testing.T, c *client.Client, dir string, n int64) (known bool) {
	t.Helper()
	ctx := within(t)
	known = true
	if err := c.Mkdir(ctx, dir, 0o755); err != nil {
		fails(t, err, syscall.EIO) // never EEXIST
		known = false
	}
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	if got := read(t, f); got != "content" {
		t.Errorf("cut at %d: read %q", n, got)
	}
	g, err := c.Open(ctx, "/g", create, 0o644)
	ok(t, err)
	for i, s := range []string{"one,", "two,", "three"} {
		_, err := g.Pwrite(ctx, []byte(s), int64(4*i))
		ok(t, err)
	}
	ok(t, g.Fsync(ctx))
	if got := read(t, g); got != "one,two,three" {
		t.Errorf("cut at %d: wrote %q", n, got)
	}
	b := make([]byte, 100)
	m, err := c.GetfileMax(ctx, "/f", b)
	ok(t, err)
	if string(b[:m]) != "content" {
		t.Errorf("cut at %d: got %q", n, b[:m])
	}
	_, err = c.Getlongdir(ctx, "/none")
	if err == nil {
		t.Errorf("cut at %d: listed what is not there", n)
	}
	ok(t, f.Close(ctx))
	ok(t, g.Close(ctx))
	return known
}

// TestSlowLink: what takes longer than Stall is no stall while bytes move.
func TestSlowLink(t *testing.T) {
	t.Parallel()
	p := chirptest.Server(t)
	relay := chirptest.NewRelay(t, p.Addr)
	c := dial(t, relay.Addr, client.Options{Stall: 500 * time.Millisecond})
	ctx := within(t)
	data := bytes.Repeat([]byte("slow"), 1<<20/4)
	f, err := c.Open(ctx, "/f", create, 0o644)
	ok(t, err)
	before := relay.Conns()
	relay.SetRate(chirptest.Up, 1<<20)
	relay.SetRate(chirptest.Down, 1<<20)
	_, err = f.Pwrite(ctx, data, 0)
	ok(t, err)
	got := make([]byte, len(data))
	n, err := f.Pread(ctx, got, 0)
	ok(t, err)
	if n != len(data) || !bytes.Equal(got, data) {
		t.Errorf("read %d bytes that differ", n)
	}
	if n := relay.Conns() - before; n != 0 {
		t.Errorf("%d connections were made anew", n)
	}
	data = data[:200<<10]
	ok(t, c.Putfile(ctx, "/g", 0o644, int64(len(data)), bytes.NewReader(data)))
	var b bytes.Buffer
	_, err = c.Getfile(ctx, "/g", &b)
	ok(t, err)
	if !bytes.Equal(b.Bytes(), data) {
		t.Error("a whole file differs")
	}
	ok(t, f.Close(ctx))
}

// TestKeepAlive: a connection is kept while files are open on it, and let go when
// nothing needs it.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	pings, ended := 0, make(chan struct{})
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		for {
			switch c.Request().(type) {
			case nil:
				close(ended)
				return
			case *wire.Open:
				c.Send("7\n" + statLine)
			case *wire.Fstat:
				mu.Lock()
				pings++
				mu.Unlock()
				c.Send("0\n" + statLine)
			default:
				c.Send("0\n")
			}
		}
	})
	o := byAddress()
	o.Conns = 1
	c := dial(t, addr, o.WithKeepAlive(20*time.Millisecond))
	f, err := c.Open(within(t), "/f", wire.OpenRead, 0)
	ok(t, err)
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		mu.Lock()
		n := pings
		mu.Unlock()
		if n >= 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d requests kept the connection alive", n)
		}
	}
	select {
	case <-ended:
		t.Fatal("the connection was let go with a file open")
	default:
	}
	ok(t, f.Close(within(t)))
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the idle connection was not let go")
	}
}

// TestIdleServerDrops is case 32 with a server that drops idle clients at once.
func TestIdleServerDrops(t *testing.T) {
	t.Parallel()
	p := chirptest.RealServer(t, "-t", "1")
	c := dial(t, p.Addr, client.Options{})
	ctx := within(t)
	put(t, c, "/f", "content")
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	time.Sleep(2500 * time.Millisecond)
	ok(t, c.Mkdir(ctx, "/d", 0o755))
	if got := read(t, f); got != "content" {
		t.Errorf("read %q", got)
	}
	ok(t, c.Putfile(ctx, "/g", 0o644, 1, strings.NewReader("1")))
}
