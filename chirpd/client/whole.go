package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"skeletonkey/chirpd/wire"
)

// chunk is how much of a whole file is moved at a time, in bytes.
const chunk = 256 << 10

var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// Getfile copies the file at path to w and returns how many bytes it has, on a
// connection of its own: w may take its time. w is not used after Getfile has
// returned. A lost connection is met by a second attempt as long as w got nothing.
func (c *Client) Getfile(ctx context.Context, path string, w io.Writer) (int64, error) {
	k := c.call("getfile", path, pure, &wire.Getfile{Path: path})
	k.read = func(in *conn, n int64) error { return in.copyTo(w, n, k) }
	return c.alone(ctx, k)
}

// copyTo hands on n bytes of the input.
func (c *conn) copyTo(w io.Writer, n int64, k *Call) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	for n > 0 {
		m, err := c.rd.Read(buf[:min(n, chunk)])
		if m > 0 {
			k.replay = once
			k.outside.Store(true)
			_, werr := w.Write(buf[:m])
			k.outside.Store(false)
			if werr != nil {
				return &dropped{werr}
			}
		}
		if n -= int64(m); err != nil && n > 0 {
			return cut(err)
		}
	}
	return nil
}

// drainLimit is how many bytes too many of a file are read away before the
// connection is given up instead.
const drainLimit = 1 << 20

// StartGetfile starts reading the whole file at path into buf, one round trip,
// pipelined with others. buf belongs to the call until it is done. A file that is
// larger is TooBig (EFBIG).
func (c *Client) StartGetfile(path string, buf []byte) *Call {
	return c.whole.start(c.getfileCall(path, buf))
}

func (c *Client) getfileCall(path string, buf []byte) *Call {
	k := c.call("getfile", path, pure, &wire.Getfile{Path: path})
	k.read = func(in *conn, n int64) error {
		if n <= int64(len(buf)) {
			return in.fill(k, buf[:n])
		}
		big := &wire.Error{Op: k.op, Code: wire.TooBig, Err: &cause{syscall.EFBIG,
			fmt.Sprintf("file of %d bytes does not fit into a buffer of %d", n, len(buf)), nil}}
		if n > drainLimit {
			return &dropped{big}
		}
		if err := in.skip(n); err != nil {
			return err
		}
		return big
	}
	return k
}

// GetfileMax reads the whole file at path into buf and returns its size, as
// StartGetfile does.
func (c *Client) GetfileMax(ctx context.Context, path string, buf []byte) (int64, error) {
	return c.whole.run(ctx, c.getfileCall(path, buf))
}

// Putfile makes the file at path of size bytes from r, with the permissions mode, on
// a connection of its own: r may take its time. A real server writes in place, and
// removes what it has when the connection is lost. r is not used after Putfile has
// returned.
func (c *Client) Putfile(ctx context.Context, path string, mode, size int64, r io.Reader) error {
	k := c.call("putfile", path, once, &wire.Putfile{Path: path, Mode: mode, Length: size})
	k.read = func(in *conn, _ int64) error {
		if err := in.copyFrom(r, size, k); err != nil {
			return err
		}
		n, err := in.number()
		switch {
		case err != nil:
			return err
		case n < 0:
			return &wire.Error{Op: k.op, Code: wire.Code(n), Err: wire.Code(n)}
		case n != size:
			return outOfStep("%d bytes written of %d", n, size)
		}
		return nil
	}
	_, err := c.alone(ctx, k)
	return err
}

// copyFrom sends n bytes of r. The connection is the call's own, and the server has
// said that it waits for them, so nothing else is written.
func (c *conn) copyFrom(r io.Reader, n int64, k *Call) error {
	buf := chunks.Get().(*[chunk]byte)
	defer chunks.Put(buf)
	c.mu.Lock()
	c.queued += n
	k.end = c.queued // so that what is sent counts as progress
	c.mu.Unlock()
	for n > 0 {
		k.outside.Store(true)
		m, err := io.ReadAtLeast(r, buf[:min(n, chunk)], 1)
		k.outside.Store(false)
		if _, werr := (output{c}).Write(buf[:m]); werr != nil {
			return c.refused(k, werr)
		}
		if n -= int64(m); err != nil && n > 0 {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("input ended %d bytes early: %w", n, io.ErrUnexpectedEOF)
			}
			return &dropped{err}
		}
	}
	return nil
}

// refused is what the server said when it would not take all the data, or else err.
func (c *conn) refused(k *Call, err error) error {
	if n, nerr := c.number(); nerr == nil && n < 0 {
		return &dropped{&wire.Error{Op: k.op, Code: wire.Code(n), Err: wire.Code(n)}}
	}
	return err
}
