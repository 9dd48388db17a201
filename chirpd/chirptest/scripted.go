package chirptest

import (
	"context"
	"net"
	"sync"
	"testing"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// ScriptedConn is one client of a scripted server, authenticated by address.
type ScriptedConn struct {
	*net.TCPConn
	R *wire.Reader // all input goes through it

	Number int // of the connection, from 1
}

// Request reads the next request; nil when the client has left.
func (c *ScriptedConn) Request() wire.Request {
	for {
		line, err := c.R.ReadLine()
		if err != nil {
			return nil
		}
		if r, err := wire.ParseRequest(line); err == nil {
			return r
		}
	}
}

// Send writes text; it matters to nobody whether the client is still there.
func (c *ScriptedConn) Send(text string) { _, _ = c.Write([]byte(text)) }

// Scripted starts a server that lets every client in by the method address and then
// does as serve says, in a goroutine for each. It returns the server's address.
// When the test ends, connections are closed and serve is waited for.
func Scripted(t testing.TB, serve func(c *ScriptedConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	conns, closed := []*ScriptedConn(nil), false
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			c := &ScriptedConn{TCPConn: nc.(*net.TCPConn), R: wire.NewReader(nc, 4096), Number: len(conns) + 1}
			conns = append(conns, c)
			if closed {
				_ = c.Close()
			}
			mu.Unlock()
			wg.Go(func() {
				defer func() { _ = c.Close() }()
				s := &auth.Stream{Reader: c.R, W: c}
				if _, err := auth.Accept(context.Background(), s, c.RemoteAddr(), []auth.Verifier{auth.AddressVerifier()}); err == nil {
					serve(c)
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		closed = true
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return l.Addr().String()
}
