package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// TestHostileServer answers what the protocol does not allow: each is an EIO of the
// call that met it, at once, and the next call works.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	stat := func(ctx context.Context, c *client.Client) error {
		_, err := c.Stat(ctx, "/f")
		return err
	}
	read := func(ctx context.Context, c *client.Client) error {
		f, err := c.Open(ctx, "/f", readWrite, 0)
		if err != nil {
			return err
		}
		_, err = f.Pread(ctx, make([]byte, 4), 0)
		return err
	}
	write := func(ctx context.Context, c *client.Client) error {
		f, err := c.Open(ctx, "/f", readWrite, 0)
		if err != nil {
			return err
		}
		_, err = f.Pwrite(ctx, make([]byte, 4), 0)
		return err
	}
	list := func(ctx context.Context, c *client.Client) error {
		_, err := c.Getlongdir(ctx, "/")
		return err
	}
	whoami := func(ctx context.Context, c *client.Client) error {
		_, err := c.Whoami(ctx)
		return err
	}
	ticket := func(ctx context.Context, c *client.Client) error {
		_, err := c.TicketGet(ctx, "0123")
		return err
	}
	opened := "7\n" + statLine
	for _, h := range []struct {
		name    string
		answers []string // to the first requests; then the connection stays silent
		do      func(context.Context, *client.Client) error
	}{
		{"no number", []string{"yes\n"}, stat},
		{"empty line", []string{"\n"}, stat},
		{"number too large", []string{"99999999999999999999\n"}, stat},
		{"two numbers", []string{"0 0\n"}, stat},
		{"endless line", []string{strings.Repeat("9", 70<<10) + "\n"}, stat},
		{"bad stat", []string{"0\n1 2 3\n"}, stat},
		{"unasked", []string{"0\n" + statLine + "0\n"}, func(ctx context.Context, c *client.Client) error {
			if err := stat(ctx, c); err != nil {
				return err
			}
			return stat(ctx, c)
		}},
		{"open without stat", []string{"3\nhello\n"}, read},
		{"more than asked for", []string{opened, "5\nhello"}, read},
		{"huge read", []string{opened, "9223372036854775807\nhello"}, read},
		{"more than written", []string{opened, "5\n"}, write},
		{"nothing written", []string{opened, "0\n"}, write},
		{"name without end", []string{"0\n" + strings.Repeat("x\n", 1000)}, list},
		{"huge text", []string{"1000000000\n"}, whoami},
		{"ticket of no length", []string{"0\n-5\n"}, ticket},
		{"ticket of huge length", []string{"0\n3\nabc1000000000\n"}, ticket},
		{"ticket with bad rights", []string{"0\n3\nabc3\nabc5\nrl\n"}, ticket},
	} {
		t.Run(h.name, func(t *testing.T) {
			addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
				if c.Number > 1 {
					for c.Request() != nil {
						c.Send("0\n" + statLine)
					}
					return
				}
				for _, a := range h.answers {
					c.Request()
					c.Send(a)
				}
				for c.Request() != nil {
					continue
				}
			})
			c := dial(t, addr, byAddress())
			if h.name == "unasked" { // the surplus may come before or after the second request
				_ = h.do(within(t), c)
			} else {
				fails(t, h.do(within(t), c), syscall.EIO)
			}
			ok(t, stat(within(t), c))
		})
	}
}

// TestUnknownCode: a code that nobody knows is EIO, and the stream stays in step.
func TestUnknownCode(t *testing.T) {
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		c.Send("-77\n")
		c.Request()
		c.Send("-9223372036854775808\n")
		c.Request()
		c.Send("0\n" + statLine)
		c.Request()
	})
	c := dial(t, addr, byAddress())
	for range 2 {
		_, err := c.Stat(within(t), "/f")
		fails(t, err, syscall.EIO)
	}
	_, err := c.Stat(within(t), "/f")
	ok(t, err)
}

// TestNotLetIn: a peer that refuses us, or speaks something else, is not asked again
// and again.
func TestNotLetIn(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	scripted := chirptest.Scripted(t, func(*chirptest.ScriptedConn) {})
	for _, n := range []struct {
		name, addr string
		methods    []auth.Method
		want       syscall.Errno
	}{
		{"refused", scripted, []auth.Method{auth.Hostname()}, syscall.EACCES},
		{"no method", scripted, []auth.Method{}, syscall.EACCES},
		{"web server", strings.TrimPrefix(web.URL, "http://"), []auth.Method{auth.Address()}, syscall.EIO},
		{"no such server", "nobody@home", nil, syscall.EIO},
	} {
		t.Run(n.name, func(t *testing.T) {
			c := dial(t, n.addr, client.Options{Methods: n.methods, Timeout: time.Hour})
			_, err := c.Stat(within(t), "/")
			fails(t, err, n.want)
			_, err = c.Open(within(t), "/", wire.OpenRead, 0)
			fails(t, err, n.want)
		})
	}
}

// TestNameUnknown: a name that does not exist is an error at once, unless the server
// was there before.
func TestNameUnknown(t *testing.T) {
	t.Parallel()
	p := chirptest.Server(t)
	_, port, _ := net.SplitHostPort(p.Addr)
	var known atomic.Bool
	o := client.Options{Timeout: time.Hour, Methods: []auth.Method{auth.Unix("")}}
	c := dial(t, "host:"+port, o.WithResolver(func(_ context.Context, _, host string) ([]netip.Addr, error) {
		if known.Load() {
			// Case 13: nobody listens at the first.
			return []netip.Addr{netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}))
	_, err := c.Stat(within(t), "/")
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		t.Fatalf("error is %v", err)
	}
	known.Store(true)
	_, err = c.Stat(within(t), "/")
	ok(t, err)
	known.Store(false)
	p.Stop()
	p.Start()
	time.AfterFunc(50*time.Millisecond, func() { known.Store(true) })
	_, err = c.Stat(within(t), "/")
	ok(t, err)
}

// TestFailAtOnce: with a negative Timeout a server that is away is an error with the
// first attempt, and one that dropped us is not.
func TestFailAtOnce(t *testing.T) {
	t.Parallel()
	p := chirptest.Server(t)
	c := dial(t, p.Addr, client.Options{Timeout: -1})
	_, err := c.Stat(within(t), "/")
	ok(t, err)
	p.Stop()
	_, err = c.Stat(within(t), "/")
	fails(t, err, syscall.ECONNREFUSED)
	p.Start()
	_, err = c.Stat(within(t), "/")
	ok(t, err)
	p.Stop()
	p.Start()
	_, err = c.Stat(within(t), "/")
	ok(t, err)
}

// TestListingWithLineFeeds: attributes tell where a name with line feeds ends.
func TestListingWithLineFeeds(t *testing.T) {
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		c.Send("0\na\nb\nc\n" + statLine + "d\n" + statLine + "\n")
		c.Request()
	})
	c := dial(t, addr, byAddress())
	entries, err := c.Getlongdir(within(t), "/")
	ok(t, err)
	if len(entries) != 2 || entries[0].Name != "a\nb\nc" || entries[1].Name != "d" || entries[1].Size != 10 {
		t.Errorf("entries are %+v", entries)
	}
}

// TestGetfileTooBig: a file far larger than the buffer is not read to its end.
func TestGetfileTooBig(t *testing.T) {
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		if c.Number == 1 {
			c.Send("1000000000\nsome of it\n0\n")
		} else {
			c.Send("2\nok")
		}
		c.Request()
	})
	c := dial(t, addr, byAddress())
	buf := make([]byte, 10)
	_, err := c.GetfileMax(within(t), "/big", buf)
	fails(t, err, syscall.EFBIG)
	n, err := c.GetfileMax(within(t), "/small", buf)
	ok(t, err)
	if string(buf[:n]) != "ok" {
		t.Errorf("the next file is %q", buf[:n])
	}
}

// FuzzAnswers feeds a client what a server may say to a mix of calls. It must not
// panic or hang, whatever that is.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte("0\n" + statLine + "0\n.\n" + statLine + "\n9\nunix:user"))
	f.Add([]byte("7\n" + statLine + "4\nabcd0\n0\n"))
	f.Add([]byte("-3\n-1\n0\n3\nabc3\nabc5\n/a rl\n0\n"))
	f.Fuzz(func(t *testing.T, answers []byte) {
		here, there := net.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			defer there.Close()
			go func() { _, _ = there.Write(append([]byte("yes\nyes\nyes\naddress\nme\n"), answers...)); there.Close() }()
			b := make([]byte, 4096)
			for {
				if _, err := there.Read(b); err != nil {
					return
				}
			}
		}()
		dialed := false
		c := client.New("127.0.0.1", client.Options{
			Methods: []auth.Method{auth.Address()}, Timeout: -1, Conns: 1,
			Dial: func(context.Context, string, string) (net.Conn, error) {
				if dialed {
					return nil, syscall.ECONNREFUSED
				}
				dialed = true
				return here, nil
			},
		})
		ctx := within(t)
		_, _ = c.Stat(ctx, "/")
		_, _ = c.Getlongdir(ctx, "/")
		_, _ = c.Whoami(ctx)
		_, _ = c.TicketGet(ctx, "0")
		_, _ = c.TicketList(ctx, "self")
		_, _ = c.Getacl(ctx, "/")
		_, _ = c.Statfs(ctx, "/")
		_ = c.Close()
		here.Close()
		<-served
	})
}
