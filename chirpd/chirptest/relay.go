package chirptest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Way is a direction through a Relay.
type Way int

// The directions.
const (
	Up   Way = iota // from client to server
	Down            // from server to client
)

// Relay carries TCP connections to a server, as badly as its test wants. Settings
// hold for connections that exist as well, from the next bytes on.
type Relay struct {
	Addr string // where clients connect

	target string
	t      testing.TB
	wg     sync.WaitGroup

	mu       sync.Mutex // guards the following
	listener net.Listener
	links    map[*link]struct{}
	delay    time.Duration
	rate     [2]int64 // bytes per second; 0 is as fast as it goes
	cutAt    [2]int64 // the first connection to carry so many bytes ends; 0 is none
	deaf     [2]bool  // swallow what comes
	paused   bool
	changed  *sync.Cond // any of this, or a link's state
	closed   bool
	turns    int
	conns    int
	bytes    [2]int64
}

// NewRelay starts a relay to target (host:port).
func NewRelay(t testing.TB, target string) *Relay {
	t.Helper()
	r := &Relay{t: t, target: target, Addr: freeAddr(t), links: make(map[*link]struct{})}
	r.changed = sync.NewCond(&r.mu)
	r.Accept()
	t.Cleanup(r.close)
	return r
}

// Accept listens again after Refuse.
func (r *Relay) Accept() {
	l := listen(r.t, r.Addr)
	r.mu.Lock()
	r.listener = l
	r.mu.Unlock()
	r.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r.carry(c.(*net.TCPConn))
		}
	})
}

// Refuse stops listening; what is connected stays.
func (r *Relay) Refuse() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.listener.Close()
}

func (r *Relay) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.changed.Broadcast()
}

// SetDelay makes every byte so much later, in each direction.
func (r *Relay) SetDelay(d time.Duration) { r.set(func() { r.delay = d }) }

// SetRate limits a direction of each connection to so many bytes per second; 0 is
// no limit.
func (r *Relay) SetRate(w Way, perSecond int64) { r.set(func() { r.rate[w] = perSecond }) }

// CutAfter resets the first connection on which n bytes have passed in a direction,
// counted from its beginning, and no other; 0 is none.
func (r *Relay) CutAfter(w Way, n int64) { r.set(func() { r.cutAt[w] = n }) }

// Deafen swallows what comes in a direction from now on; the connection stays open.
func (r *Relay) Deafen(w Way, on bool) { r.set(func() { r.deaf[w] = on }) }

// Pause holds everything back until Resume.
func (r *Relay) Pause() { r.set(func() { r.paused = true }) }

// Resume goes on after Pause.
func (r *Relay) Resume() { r.set(func() { r.paused = false }) }

// Cut resets all connections.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.end(true)
	}
}

// Hang ends all connections on the server's side only: the client is not told.
func (r *Relay) Hang() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		l.hung = true
		_ = l.side[Up].Close()
	}
}

// Turns is how many round trips there were: how often a client sent something
// without having sent anything since it last got something, each connection by
// itself, its authentication included. A delay of a few milliseconds makes what a
// client sends without waiting one turn.
func (r *Relay) Turns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.turns
}

// Cuts reports whether CutAfter in a direction is still to come.
func (r *Relay) Cuts(w Way) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cutAt[w] > 0
}

// Conns is how many connections there were.
func (r *Relay) Conns() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conns
}

// Bytes is how many bytes were taken in from a direction's sender.
func (r *Relay) Bytes(w Way) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes[w]
}

func (r *Relay) close() {
	r.mu.Lock()
	r.closed = true
	_ = r.listener.Close()
	for l := range r.links {
		l.end(true)
	}
	r.changed.Broadcast()
	r.mu.Unlock()
	r.wg.Wait()
}
