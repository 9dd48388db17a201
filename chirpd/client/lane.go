package client

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// lane is a connection that comes back: what a call is given to. It outlives the
// conns that it uses one after the other, and knows the files that are open on it.
//
// A call is either in pending, or in the current conn's queue, or in the hands of
// the conn's readLoop on its way back (lost). While pending is not empty there is a
// keeper, the goroutine that connects, unless an old conn is still about to end:
// calls of that one come first.
type lane struct {
	client *Client
	ctx    context.Context // ends with the lane
	cancel context.CancelFunc
	keeper sync.WaitGroup

	mu      sync.Mutex // guards the following; taken before conn.mu and Call.mu
	closed  bool
	conn    *conn // nil while there is none
	files   map[*File]struct{}
	opens   int // files open or being opened, for the choice of a lane
	pending []*Call
	keeping bool // there is a keeper
	attempt context.CancelFunc
	delay   backoff.ExponentialBackOff
	notYet  time.Time // before it no attempt to connect is made, as earlier ones were of no use
	settled time.Time // before it none is made, as the server may be at work on what will be sent again
	idle    *time.Timer
	seen    int64 // calls of conn when idle last fired
}

func newLane(c *Client) *lane {
	l := &lane{client: c, files: make(map[*File]struct{}), delay: *backoff.NewExponentialBackOff()}
	l.delay.InitialInterval, l.delay.MaxInterval = 20*time.Millisecond, 3*time.Second
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// start takes a call, and returns it.
func (l *lane) start(k *Call) *Call {
	k.init(l)
	l.mu.Lock()
	var over bool
	var err error
	if f := k.file; f != nil && f.closed {
		over, err = true, &cause{syscall.EBADF, "file is closed", nil}
		k.then = nil // which is for the first close
	} else {
		if k.closing {
			f.closed = true
			l.opens-- // files opened from now on may follow on this connection
		}
		over, err = l.submit(k)
	}
	l.mu.Unlock()
	if over {
		k.finish(0, err)
	}
	return k
}

// run starts a call and waits for it, unless ctx has ended before.
func (l *lane) run(ctx context.Context, k *Call) (int64, error) {
	if err := ctx.Err(); err != nil {
		k.init(l)
		k.finish(0, err)
		return k.n, k.err
	}
	l.start(k)
	return k.wait(ctx)
}

// submit gives a call to the connection, or keeps it for the next one. over says
// that it needs neither. l.mu is held.
func (l *lane) submit(k *Call) (over bool, err error) {
	if l.closed {
		return true, net.ErrClosed
	}
	if k.isAbandoned() {
		return true, errCaller
	}
	if f := k.file; f != nil && (f.stale != nil || l.conn == nil) && l.closedAnyhow(k, l.pending) {
		return true, nil
	}
	if f := k.file; f != nil && f.stale != nil {
		return true, f.stale
	}
	if l.conn != nil {
		switch f := k.file; {
		case f == nil:
		case f.on != l.conn:
			return true, stale("not open on this connection")
		case k.sent && k.replay == again && l.client.othersWrite(f):
			return true, unknownOutcome(k.op, errOvertakes)
		}
		if err := l.conn.enqueue(k); !errors.Is(err, errDown) {
			return err != nil, err
		}
	}
	l.pending = append(l.pending, k)
	l.keep()
	return false, nil
}

// closedAnyhow reports whether k closes a file that went with the connection, and
// had nothing that may be lost. It does not while calls on the file are among those
// that wait for the next connection. l.mu is held.
func (l *lane) closedAnyhow(k *Call, waiting []*Call) bool {
	if !k.closing || k.file.dirty() || slices.ContainsFunc(waiting, func(w *Call) bool { return w.file == k.file }) {
		return false
	}
	delete(l.files, k.file)
	return true
}

// keep sees to it that pending calls get a connection. l.mu is held.
func (l *lane) keep() {
	if l.conn == nil && len(l.pending) > 0 && !l.keeping && !l.closed {
		l.keeping = true
		l.keeper.Add(1)
		go l.connect()
	}
}

// abandon marks a call as one that nobody waits for. It returns the connection that
// may be at work on it, if any.
func (l *lane) abandon(k *Call) *conn {
	l.mu.Lock()
	k.mu.Lock()
	k.abandoned = true
	k.mu.Unlock()
	i := slices.Index(l.pending, k)
	if i < 0 {
		defer l.mu.Unlock()
		return k.conn
	}
	l.pending = slices.Delete(l.pending, i, i+1)
	if len(l.pending) == 0 && l.attempt != nil {
		l.attempt()
	}
	l.mu.Unlock()
	k.finish(0, errCaller)
	return nil
}

// lost takes back what a connection that has ended did not answer.
func (l *lane) lost(c *conn, orphans []*Call, cause error) {
	var ended []ending
	l.mu.Lock()
	c.lost = true
	own := l.conn == c
	if own {
		l.conn = nil
		l.idle.Stop()
		if c.answered.Load() > 0 {
			l.delay.Reset()
			l.notYet = time.Time{}
		} else {
			l.failed()
		}
	}
	var kept []*Call
	for i, k := range orphans {
		if k.sent = k.sent || c.written.Load() >= k.lineEnd; k.sent && i == 0 {
			k.losses++
		}
		over, err := l.closedAnyhow(k, kept), error(nil)
		if !over {
			over, err = l.judge(k, c, cause)
		}
		if !over && own {
			if k.sent && k.replay == again {
				l.settled = time.Now().Add(l.client.opt.settle)
			}
			k.conn = nil
			kept = append(kept, k)
			continue
		}
		if !over {
			err = cause
		}
		ended = append(ended, ending{k, err})
	}
	waiting := len(kept)
	for _, k := range l.pending { // what came while the connection was ending
		if l.closedAnyhow(k, kept) {
			ended = append(ended, ending{k, nil})
		} else {
			kept = append(kept, k)
		}
	}
	l.pending = kept
	l.keep()
	l.mu.Unlock()
	if own && !errors.Is(cause, errIdle) && !errors.Is(cause, errCaller) && !errors.Is(cause, net.ErrClosed) {
		l.client.opt.Log.Info("connection lost", "server", l.client.server, "cause", cause, "waiting", waiting, "failed", len(ended))
	}
	finish(ended)
}

// ending is a call with what it failed with, or nil.
type ending struct {
	call *Call
	err  error
}

// finish finishes calls, which must not happen under a lock.
func finish(ended []ending) {
	for _, e := range ended {
		e.call.finish(0, e.err)
	}
}

// judge decides whether a call whose connection was lost is over, and with which
// error; otherwise it may be sent again. l.mu is held.
func (l *lane) judge(k *Call, c *conn, cause error) (over bool, err error) {
	switch {
	case k.fatal != nil:
		return true, k.fatal
	case k.isAbandoned():
		return true, errCaller
	case l.closed:
		return true, net.ErrClosed
	case k.bound:
		return true, cause
	case k.sent && (k.replay == once || k.replay == again && !endedByServer(cause)):
		return true, unknownOutcome(k.op, cause)
	case k.losses > maxLosses:
		return true, unknownOutcome(k.op, cause)
	}
	limit := l.client.opt.Timeout
	c.mu.Lock()
	if moved := c.last.at.Add(max(limit, 0)); moved.After(k.deadline) {
		k.deadline = moved
	}
	c.mu.Unlock()
	if limit > 0 && !time.Now().Before(k.deadline) {
		return true, timedOut(l.client.server, limit, cause)
	}
	return false, nil
}

// close ends the lane and every call on it, and waits until nothing of it runs.
func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	ended, c := l.pending, l.conn
	l.pending = nil
	l.cancel()
	if c != nil {
		l.idle.Stop()
		c.shut(net.ErrClosed)
	}
	l.mu.Unlock()
	for _, k := range ended {
		k.finish(0, net.ErrClosed)
	}
	if c != nil {
		<-c.gone
	}
	l.keeper.Wait()
}
