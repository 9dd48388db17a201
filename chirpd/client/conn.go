package client

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

const (
	inputBuffer = 16 << 10 // bytes; larger data passes it by
	copyLimit   = 16 << 10 // data up to this many bytes is copied behind its request
)

// segment is a part of the output: lines and small data that the connection owns,
// or the data of one call, which it must hold while it writes.
type segment struct {
	b    []byte
	call *Call // nil for what the connection owns
}

// conn is one authenticated connection.
//
//	enqueue -> out  -> writeLoop -> socket
//	        -> fifo -> readLoop  <- socket
//
// enqueue appends a call to both queues under mu. writeLoop takes all of out at
// once, so that calls queued together cost one write. readLoop owns the input and
// completes calls in the order of fifo; when the connection ends, for whatever
// reason, it closes the socket, waits for writeLoop, and hands what is left of fifo
// to the lane. Then gone is closed.
type conn struct {
	nc      net.Conn
	rd      *wire.Reader // of readLoop
	lane    *lane
	subject auth.Subject
	maxLine int // bytes of a request's line, LF included, that the server takes

	running bool // the loops have begun
	filling bool // of readLoop: a caller's buffer is being filled

	received atomic.Int64 // bytes
	written  atomic.Int64 // bytes that the kernel has taken
	answered atomic.Int64 // replies

	mu      sync.Mutex // guards the following
	err     error      // why no more calls are taken
	fifo    []*Call    // queued and not answered, oldest first
	out     []segment  // queued and not taken by writeLoop
	queued  int64      // bytes ever queued
	calls   int64      // ever queued
	watch   *time.Timer
	watched bool // watch is running
	last    progress

	wake  chan struct{} // out is not empty; holds one
	quit  chan struct{} // ends writeLoop
	quiet chan struct{} // writeLoop has ended
	gone  chan struct{} // all is over, the lane knows
	lost  bool          // guarded by lane.mu: lane.lost was called
}

func newConn(nc net.Conn, l *lane) *conn {
	c := &conn{
		nc: nc, lane: l, maxLine: wire.MaxPeerLine,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), quiet: make(chan struct{}), gone: make(chan struct{}),
	}
	c.rd = wire.NewReader(input{c}, inputBuffer)
	return c
}

// run starts the two loops. What was written before is not theirs.
func (c *conn) run() {
	c.queued = c.written.Load()
	c.running = true
	go c.writeLoop()
	go c.readLoop()
}

// errDown says that the connection takes no more calls; it stands for conn.err.
var errDown = errors.New("connection is down")

// enqueue takes a call. When it fails, nothing was queued: errDown, or what is
// wrong with the request. The lane's mu is held.
func (c *conn) enqueue(k *Call) error {
	var fd int64
	if k.file != nil {
		fd = k.file.fd
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return errDown
	}
	if err := c.appendLine(k, fd); err != nil {
		return err
	}
	c.queued += int64(len(k.data))
	k.end, k.conn = c.queued, c
	switch {
	case len(k.data) == 0:
	case len(k.data) <= copyLimit:
		own := &c.out[len(c.out)-1]
		own.b = append(own.b, k.data...)
	default:
		c.out = append(c.out, segment{k.data, k})
	}
	c.calls++
	c.fifo = append(c.fifo, k)
	c.startWatch()
	select {
	case c.wake <- struct{}{}:
	default:
	}
	return nil
}

// appendLine puts the request's line at the end of the output.
func (c *conn) appendLine(k *Call, fd int64) error {
	if n := len(c.out); n == 0 || c.out[n-1].call != nil {
		c.out = append(c.out, segment{b: make([]byte, 0, 128)})
	}
	own := &c.out[len(c.out)-1]
	b, err := wire.AppendRequest(own.b, k.request(fd))
	if err != nil {
		return err
	}
	size := len(b) - len(own.b)
	if size > c.maxLine {
		return &wire.Error{Op: k.op, Code: wire.NameTooLong, Err: &cause{syscall.ENAMETOOLONG,
			fmt.Sprintf("request of %d bytes, and this server takes %d", size, c.maxLine), nil}}
	}
	own.b = b
	c.queued += int64(size)
	k.lineEnd = c.queued
	return nil
}

// take is writeLoop's: all of the output so far. The data of calls is held, and
// that of calls which nobody waits for is copied, as the caller has it back.
func (c *conn) take() []segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	batch := c.out
	c.out = nil
	for i := range batch {
		if k := batch[i].call; k != nil && !k.hold() {
			batch[i].own()
		}
	}
	return batch
}

// own makes the segment the connection's.
func (s *segment) own() {
	s.b = append([]byte(nil), s.b...)
	s.call = nil
}

// unshare copies the data of a call that is still in the queue.
func (c *conn) unshare(k *Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.out {
		if c.out[i].call == k {
			c.out[i].own()
		}
	}
}

// writeLoop writes what is queued until quit.
func (c *conn) writeLoop() {
	defer close(c.quiet)
	for {
		select {
		case <-c.wake:
		case <-c.quit:
			return
		}
		batch := c.take()
		err := c.write(batch)
		for _, s := range batch {
			if s.call != nil {
				s.call.release()
			}
		}
		if err != nil {
			c.brokenOutput(err)
			return
		}
	}
}

// write puts batch on the wire. When it is poked, the data of abandoned calls is
// copied and released in the middle.
func (c *conn) write(batch []segment) error {
	done := 0 // bytes of batch
	for {
		var bufs net.Buffers
		skip := done
		for _, s := range batch {
			if skip >= len(s.b) {
				skip -= len(s.b)
				continue
			}
			bufs = append(bufs, s.b[skip:])
			skip = 0
		}
		if len(bufs) == 0 {
			return nil
		}
		n, err := bufs.WriteTo(c.nc)
		done += int(n)
		c.written.Add(n)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			if err != nil {
				return err
			}
			continue
		}
		if err := c.nc.SetWriteDeadline(time.Time{}); err != nil {
			return err
		}
		for i := range batch {
			if k := batch[i].call; k != nil && k.isAbandoned() {
				batch[i].own()
				k.release()
			}
		}
	}
}

// brokenOutput takes no more calls. Replies may still be on their way in, so the
// input is left open for a moment.
func (c *conn) brokenOutput(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		time.AfterFunc(time.Second, func() { _ = c.nc.Close() })
	}
}

// shut ends the connection for the reason err.
func (c *conn) shut(err error) {
	c.mu.Lock()
	if c.err == nil {
		c.err = err
	}
	c.mu.Unlock()
	_ = c.nc.Close()
}

// retire shuts a connection that nobody waits for.
func (c *conn) retire() {
	c.mu.Lock()
	busy := len(c.fifo) > 0 || c.err != nil
	if !busy {
		c.err = errIdle
	}
	c.mu.Unlock()
	if !busy {
		_ = c.nc.Close()
	}
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// poke interrupts both loops in what they read or write, so that they look whether
// its call was abandoned. They then go on.
func (c *conn) poke() {
	_ = c.nc.SetDeadline(past)
}
