package client

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// attemptLimit is how long one attempt to connect, authenticate and reopen files
// may take.
const attemptLimit = 20 * time.Second

// connect is the keeper: it connects until no call is pending.
func (l *lane) connect() {
	defer l.keeper.Done()
	var failure error // of the last attempt
	for {
		ctx, cancel, pause := l.prepare(failure)
		if ctx == nil {
			return
		}
		if sleep(ctx, pause) {
			if failure = l.try(ctx); failure == nil {
				cancel()
				return
			}
		}
		if failure = cmp.Or(failure, ctx.Err()); errors.Is(ctx.Err(), context.Canceled) {
			failure = nil // the calls that it was for were given up, which is nobody's failure
		}
		cancel()
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// prepare fails the calls that have waited long enough, and gives the context of
// the next attempt and a pause before it. A nil context ends the keeper.
func (l *lane) prepare(failure error) (ctx context.Context, cancel context.CancelFunc, pause time.Duration) {
	l.mu.Lock()
	ended, until := l.expire(failure)
	if len(l.pending) == 0 || l.closed {
		l.keeping, l.attempt = false, nil
	} else {
		if failure != nil {
			l.failed()
		}
		pause = max(time.Until(l.settled), 0)
		if l.client.opt.Timeout > 0 {
			pause = max(pause, time.Until(l.notYet))
		}
		ctx, cancel = context.WithDeadline(l.ctx, until)
		l.attempt = cancel
	}
	l.mu.Unlock()
	if failure != nil && ctx != nil {
		l.client.opt.Log.Debug("cannot connect", "server", l.client.server, "cause", failure, "again in", pause)
	}
	if !l.hopeless(failure) {
		failure = timedOut(l.client.server, l.client.opt.Timeout, failure)
	}
	for _, k := range ended {
		k.finish(0, failure)
	}
	return ctx, cancel, pause
}

// failed notes an attempt or a connection that was of no use: the next one has to
// wait a little, each time longer. l.mu is held.
func (l *lane) failed() { l.notYet = time.Now().Add(l.delay.NextBackOff()) }

// expire takes the calls out of pending that need not wait any more after failure,
// and says until when the next attempt may last. l.mu is held.
func (l *lane) expire(failure error) (ended []*Call, until time.Time) {
	now := time.Now()
	until = now.Add(attemptLimit)
	hopeless := l.hopeless(failure)
	var kept []*Call
	for _, k := range l.pending {
		if failure != nil && (hopeless || !now.Before(k.deadline)) {
			ended = append(ended, k)
			continue
		}
		kept = append(kept, k)
		if l.client.opt.Timeout > 0 && k.deadline.Before(until) {
			until = k.deadline
		}
	}
	l.pending = kept
	return ended, until
}

// hopeless reports whether another attempt after failure is pointless: the peer does
// not let us in, is no Chirp server, or was never there and its name does not exist.
func (l *lane) hopeless(failure error) bool {
	var r *refusal
	var dns *net.DNSError
	return errors.As(failure, &r) || errors.As(failure, &dns) && dns.IsNotFound && !l.client.connected.Load()
}

// try makes one attempt to connect, to reopen the lane's files, and to hand over
// the pending calls.
func (l *lane) try(ctx context.Context) error {
	c, err := l.client.dial(ctx, l)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.shut(ctx.Err()) })
	files, err := l.reopen(c)
	if !stop() {
		err = cmp.Or(err, ctx.Err())
	}
	if err == nil {
		err = l.publish(c, files)
	}
	if err != nil {
		c.shut(err)
		<-c.gone
	}
	return err
}

// publish makes c the lane's connection.
func (l *lane) publish(c *conn, files []*reopening) error {
	var ended []ending
	l.mu.Lock()
	if c.lost || l.closed {
		l.mu.Unlock()
		return net.ErrClosed
	}
	l.client.connected.Store(true)
	l.conn, l.keeping, l.attempt, l.seen = c, false, nil, 0
	l.adopt(c, files)
	every := l.client.opt.keepAlive
	l.idle = time.AfterFunc(every, func() { l.tick(c, every) })
	pending := l.pending
	l.pending = nil
	for _, k := range pending {
		if over, err := l.submit(k); over {
			ended = append(ended, ending{k, err})
		}
	}
	l.mu.Unlock()
	finish(ended)
	return nil
}

// tick runs every so often while c is the lane's connection. When there was no call
// since the last time, a connection with open files is kept alive, and another one
// is let go before the server drops it: a request would cross the server's end.
func (l *lane) tick(c *conn, every time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != c || l.closed {
		return
	}
	c.mu.Lock()
	calls, waiting := c.calls, len(c.fifo)
	c.mu.Unlock()
	if calls == l.seen && waiting == 0 {
		var f *File
		for f = range l.files {
			break
		}
		if f == nil {
			c.retire()
			return
		}
		k := f.fstat().into(new(wire.Stat))
		k.init(l)
		_, _ = l.submit(k) // if it is over at once, nobody waits for it
		calls++
	}
	l.seen = calls
	l.idle.Reset(every)
}

// dial connects to the server, authenticates, and starts the connection's loops.
func (c *Client) dial(ctx context.Context, l *lane) (*conn, error) {
	nc, err := c.dialAny(ctx)
	if err != nil {
		return nil, err
	}
	in := newConn(nc, l)
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	in.subject, err = auth.Authenticate(ctx, &auth.Stream{Reader: in.rd, W: output{in}}, c.server, c.opt.Methods)
	if !stop() {
		err = ctx.Err()
	}
	if err == nil {
		err = nc.SetReadDeadline(time.Time{})
	}
	if err != nil {
		_ = nc.Close()
		if !fromNetwork(err) {
			err = &refusal{err}
		}
		return nil, err
	}
	c.opt.Log.Debug("connected", "server", c.server, "address", nc.RemoteAddr(), "subject", in.subject)
	in.run()
	return in, nil
}

// output counts what is written to a conn before its loops run, and by the call
// that has it to itself.
type output struct{ c *conn }

func (out output) Write(p []byte) (int, error) {
	n, err := out.c.nc.Write(p)
	out.c.written.Add(int64(n))
	return n, err
}
