package client

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"skeletonkey/chirpd/wire"
)

// replay says what may be done with a call whose request may have been executed
// before its connection was lost. A request that was not sent is always sent on the
// next one.
type replay uint8

const (
	pure  replay = iota // only reads: send it again
	again               // twice is as good as once: send it again if the first copy is as good as surely dead
	once                // never twice
)

// How much longer than Options.Stall calls may go without progress.
const (
	slowDisk = 10 // what waits for the server's disk
	slowWork = 60 // what makes it read whole files or trees; by default an hour, as on a real server
)

// maxLosses is how many connections a call may lose while it is the one that is
// being answered. It may be what kills the server.
const maxLosses = 5

// Call is a request under way. It belongs to a lane, and through it to a
// connection, until it is done; there is no goroutine behind it.
type Call struct {
	op     string
	path   string // for errors, with the server in front
	replay replay
	slow   int  // by how much longer than usual the server may be silent before it answers; 0 is 1
	bound  bool // to one connection: lost with it, never sent again

	request func(fd int64) wire.Request
	data    []byte                        // follows the request's line
	read    func(in *conn, n int64) error // what follows a reply of success; nil for nothing
	then    func(n int64, err error)      // runs before done is closed
	file    *File                         // whose descriptor the request needs; nil for none
	closing bool                          // ends file

	outside atomic.Bool // the call waits for its caller's reader or writer, not for the server

	// Owned by the lane or the connection that holds the call.
	lane     *lane
	conn     *conn
	deadline time.Time // when waiting for a server that is away ends
	lineEnd  int64     // the request's line and data end at these offsets of the
	end      int64     // connection's output
	sent     bool      // at least once, on a connection that was lost
	losses   int
	fatal    error // the connection was dropped for this call's sake

	mu        sync.Mutex    // guards the next three
	abandoned bool          // nobody waits: leave data and buffers alone
	holds     int           // who is at work on data or buffers now
	free      chan struct{} // closed when holds becomes zero; nil while nobody waits for that

	done chan struct{}
	n    int64
	err  error
}

// init makes k a call of l.
func (k *Call) init(l *lane) {
	k.lane = l
	k.done = make(chan struct{})
	k.deadline = time.Now().Add(max(l.client.opt.Timeout, 0))
}

// Done is closed when the call has its answer, or has failed.
func (k *Call) Done() <-chan struct{} { return k.done }

// Wait returns the call's answer: for reads and writes the count of bytes. When
// ctx ends first, Wait fails at once; the call goes on, and the buffers that it was
// given stay its own until Done is closed.
func (k *Call) Wait(ctx context.Context) (int64, error) {
	select {
	case <-k.done:
		return k.n, k.err
	default:
	}
	select {
	case <-k.done:
		return k.n, k.err
	case <-ctx.Done():
		return 0, k.fail(ctx.Err())
	}
}

// wait is Wait for a caller who wants its buffers back when ctx ends: the call is
// then abandoned.
func (k *Call) wait(ctx context.Context) (int64, error) {
	n, err := k.Wait(ctx)
	if ctx.Err() != nil {
		k.abandon()
	}
	return n, err
}

// abandon lets go of what the caller gave. The call keeps its place, as Chirp has
// no cancel, unless it never got one. After it returns nobody reads the call's
// data nor fills its buffers.
func (k *Call) abandon() {
	c := k.lane.abandon(k)
	if c == nil {
		return
	}
	c.unshare(k)
	k.mu.Lock()
	if k.holds == 0 {
		k.mu.Unlock()
		return
	}
	free := k.freed()
	k.mu.Unlock()
	c.poke()
	<-free
}

// hold keeps data and buffers from the caller until release. It fails when they
// are the caller's again already.
func (k *Call) hold() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.abandoned {
		return false
	}
	k.holds++
	return true
}

func (k *Call) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.holds--
	if k.holds == 0 && k.free != nil {
		close(k.free)
		k.free = nil
	}
}

// freed is closed when holds becomes zero; k.mu is held, and holds is not zero.
func (k *Call) freed() chan struct{} {
	if k.free == nil {
		k.free = make(chan struct{})
	}
	return k.free
}

// awaitRelease waits until nobody is at work on data and buffers.
func (k *Call) awaitRelease() {
	k.mu.Lock()
	if k.holds == 0 {
		k.mu.Unlock()
		return
	}
	free := k.freed()
	k.mu.Unlock()
	<-free
}

func (k *Call) isAbandoned() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.abandoned
}

// finish gives the call its answer. Whoever took the call from where it was kept
// calls it, once.
func (k *Call) finish(n int64, err error) {
	if err != nil {
		n, err = 0, k.fail(err)
	}
	k.n, k.err = n, err
	if k.then != nil {
		k.then(n, err)
	}
	close(k.done)
}
