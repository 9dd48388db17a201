package client

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/wire"
)

// errPoked is a read that was interrupted by poke.
var errPoked = errors.New("poked")

// input is what a conn's Reader reads from: the socket, with bytes counted and
// pokes taken out unless a caller's buffer is being filled.
type input struct{ c *conn }

func (in input) Read(p []byte) (int, error) {
	c := in.c
	if !c.running { // the handshake has no watch
		if err := c.nc.SetReadDeadline(time.Now().Add(c.lane.client.opt.Stall)); err != nil {
			return 0, err
		}
	}
	for {
		n, err := c.nc.Read(p)
		c.received.Add(int64(n))
		if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !c.running {
			return n, err
		}
		if err := c.nc.SetReadDeadline(time.Time{}); err != nil {
			return 0, err
		}
		if c.filling {
			return 0, errPoked
		}
	}
}

// readLoop answers calls until the connection ends.
func (c *conn) readLoop() {
	err := c.readReplies()

	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	cause, orphans := c.err, c.fifo
	c.fifo, c.out = nil, nil
	if c.watch != nil {
		c.watch.Stop()
	}
	c.mu.Unlock()

	_ = c.nc.Close()
	close(c.quit)
	<-c.quiet // from here on nobody touches the calls' data
	c.lane.lost(c, orphans, cause)
	close(c.gone)
}

func (c *conn) readReplies() error {
	for {
		line, err := c.rd.ReadLine()
		k := c.head()
		if errors.Is(err, wire.ErrLineTooLong) {
			err = outOfStep("%v", err)
			if k != nil {
				k.fatal = err
			}
		}
		if err != nil {
			return err
		}
		if k == nil {
			return outOfStep("%.80q where no call waits for an answer", line)
		}
		if err := c.reply(k, line); err != nil {
			k.fatal = fatal(err)
			return err
		}
	}
}

// fatal is err where the call that met it must not be tried again.
func fatal(err error) error {
	var step *lostStep
	var drop *dropped
	if errors.As(err, &step) || errors.As(err, &drop) {
		return err
	}
	return nil
}

// head is the call that the next reply belongs to.
func (c *conn) head() *Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fifo) == 0 {
		return nil
	}
	return c.fifo[0]
}

// reply reads the answer to k, whose first line is line, and finishes k. After an
// error, the connection is of no use and k is still in the queue.
func (c *conn) reply(k *Call, line []byte) error {
	n, err := wire.ParseInt(line)
	if err != nil {
		return outOfStep("%v", err)
	}
	var failed error
	if n < 0 {
		failed = wire.Code(n)
	} else if k.read != nil {
		failed = k.read(c, n)
		if _, inStep := failed.(*wire.Error); failed != nil && !inStep {
			return failed
		}
	}
	k.awaitRelease() // an error may come before all of the data was written
	c.mu.Lock()
	c.fifo[0] = nil
	c.fifo = c.fifo[1:]
	c.mu.Unlock()
	c.answered.Add(1)
	k.finish(n, failed)
	return nil
}

// fill reads len(p) bytes into the caller's buffer, or past it when the caller has
// left.
func (c *conn) fill(k *Call, p []byte) error {
	if !k.hold() {
		return c.skip(int64(len(p)))
	}
	c.filling = true
	for len(p) > 0 && !k.isAbandoned() {
		n, err := c.rd.Read(p)
		p = p[n:]
		if err != nil && !errors.Is(err, errPoked) {
			c.filling = false
			k.release()
			return cut(err)
		}
	}
	c.filling = false
	k.release()
	return c.skip(int64(len(p)))
}

// skip reads past n bytes.
func (c *conn) skip(n int64) error {
	_, err := io.CopyN(io.Discard, c.rd, n)
	return cut(err)
}

// text reads a line that must be there.
func (c *conn) text() ([]byte, error) {
	line, err := c.rd.ReadLine()
	if errors.Is(err, wire.ErrLineTooLong) {
		err = outOfStep("%v", err)
	}
	return line, cut(err)
}

// blob reads n bytes, of which there may be at most limit.
func (c *conn) blob(n, limit int64) ([]byte, error) {
	if n > limit {
		return nil, outOfStep("%d bytes of text, more than %d", n, limit)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.rd, b)
	return b, cut(err)
}

// stat reads a stat line.
func (c *conn) stat() (wire.Stat, error) {
	line, err := c.text()
	if err != nil {
		return wire.Stat{}, err
	}
	st, err := wire.ParseStat(line)
	if err != nil {
		return st, outOfStep("%v", err)
	}
	return st, nil
}

// cut is err inside a reply, where the input must not end.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// progress is how far a connection had come at some time.
type progress struct {
	received, acked int64 // bytes in, and bytes out that the server's host has
	at              time.Time
}

func (c *conn) progress() progress {
	return progress{c.received.Load(), c.acked(), time.Now()}
}

// acked is how many bytes the server's host has acknowledged, or, where the
// kernel cannot tell, how many were written.
func (c *conn) acked() int64 {
	raw, ok := c.nc.(interface {
		SyscallConn() (syscall.RawConn, error)
	})
	written := c.written.Load()
	if !ok {
		return written
	}
	rc, err := raw.SyscallConn()
	if err != nil {
		return written
	}
	acked := written
	_ = rc.Control(func(fd uintptr) {
		if info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			acked = int64(info.Bytes_acked)
		}
	})
	return acked
}

// startWatch begins to look for a stall, unless that is going on. c.mu is held and
// fifo is not empty.
func (c *conn) startWatch() {
	if c.watched {
		return
	}
	c.watched = true
	c.last = c.progress()
	every := c.lane.client.opt.Stall / 8
	if c.watch == nil {
		c.watch = time.AfterFunc(every, c.look)
	} else {
		c.watch.Reset(every)
	}
}

// look shuts the connection when the call that is due has seen no progress for its
// limit: nothing received, and nothing of its own request taken by the server's
// host. Requests behind it do not count, since a host takes them for a server that
// is stopped.
func (c *conn) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fifo) == 0 || c.err != nil {
		c.watched = false
		return
	}
	head, now := c.fifo[0], c.progress()
	moved := now.received != c.last.received || now.acked != c.last.acked && c.last.acked < head.end
	if moved || head.outside.Load() {
		c.last = now
	}
	limit := c.lane.client.opt.Stall
	every := limit / 8
	limit *= time.Duration(max(head.slow, 1))
	if now.at.Sub(c.last.at) >= limit-every {
		c.err = &stalled{limit}
		_ = c.nc.Close()
		return
	}
	c.watch.Reset(every)
}
