package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"skeletonkey/chirpd/wire"
)

// cause is an error that an application sees as errno.
type cause struct {
	errno syscall.Errno
	text  string
	err   error // what lies beneath; may be nil
}

func (c *cause) Error() string {
	if c.err == nil {
		return c.text
	}
	return c.text + ": " + c.err.Error()
}

// Unwrap puts the errno first: that is the one that counts.
func (c *cause) Unwrap() []error {
	if c.err == nil {
		return []error{c.errno}
	}
	return []error{c.errno, c.err}
}

// lostStep is a reply that the protocol does not allow here, so that nothing that
// follows on the connection can be trusted.
type lostStep struct{ text string }

func (e *lostStep) Error() string { return e.text + "; is this a Chirp server?" }

// Is makes it an EIO.
func (e *lostStep) Is(target error) bool { return target == syscall.EIO }

func outOfStep(format string, args ...any) error {
	return &lostStep{fmt.Sprintf(format, args...)}
}

// dropped is the end of a connection for the sake of one call, whose error is err:
// its data can be neither taken nor left.
type dropped struct{ err error }

func (e *dropped) Error() string { return e.err.Error() }
func (e *dropped) Unwrap() error { return e.err }

// The ends of a connection that the client brings about.
var (
	errIdle   = errors.New("idle connection let go")
	errCaller = errors.New("call was given up")
)

// errOvertakes is why a write is not sent again.
var errOvertakes = errors.New("another open file writes to the same file")

type stalled struct{ limit time.Duration }

func (e *stalled) Error() string {
	return fmt.Sprintf("no answer and no progress for %v", e.limit)
}

// endedByServer reports whether a connection that ended with err was ended by the
// server, or the server's host. Then nothing that it had queued will run any more.
func endedByServer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// fail makes err the call's error, with operation and path.
func (k *Call) fail(err error) error {
	path := k.path
	if k.file != nil {
		path = k.file.Path()
	}
	if path != "" {
		path = k.lane.client.url(path)
	}
	if drop, ok := err.(*dropped); ok {
		err = drop.err
	}
	if e, ok := err.(*wire.Error); ok && e.Op == k.op {
		return &wire.Error{Op: k.op, Path: path, Code: e.Code, Err: e.Err}
	}
	var code wire.Code
	var step *lostStep
	switch {
	case errors.As(err, &code):
		if err == error(code) {
			err = nil // it says all by itself
		}
		return &wire.Error{Op: k.op, Path: path, Code: code, Err: err}
	case errors.Is(err, context.Canceled):
		err = &cause{syscall.EINTR, "given up", err}
	case errors.As(err, &step):
		err = &cause{syscall.EIO, "answer of the server", err}
	}
	return &wire.Error{Op: k.op, Path: path, Code: wire.CodeFor(err), Err: err}
}

// unknownOutcome is the error of a call that may or may not have been executed.
func unknownOutcome(op string, err error) error {
	return &cause{syscall.EIO, "connection lost while " + op + " was under way; its outcome is unknown", err}
}

func timedOut(server string, limit time.Duration, err error) error {
	if limit <= 0 {
		return err
	}
	return &cause{syscall.ETIMEDOUT, fmt.Sprintf("%s has not answered for %v", server, limit), err}
}

func stale(text string) error { return &cause{syscall.ESTALE, text, nil} }

// refusal is a server that does not let us in, or is not a Chirp server.
type refusal struct{ err error }

func (e *refusal) Error() string { return e.err.Error() }
func (e *refusal) Unwrap() error { return e.err }

// fromNetwork reports whether err came from the connection, not from what the peer
// said on it.
func fromNetwork(err error) bool {
	var network net.Error
	return errors.As(err, &network) || endedByServer(err) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
