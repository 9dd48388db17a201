package main

import (
	"context"
	"os"

	"golang.org/x/sys/unix"
)

// endableInput reads a file until its context ends. A read of a terminal or a pipe
// on which nothing comes cannot be ended, so it is not begun before something is
// there.
type endableInput struct {
	ctx  context.Context
	in   *os.File
	wake *os.File // at its end when ctx ends
	free func()
}

// untilDone makes in endable. The caller closes the result, which leaves in open.
func untilDone(ctx context.Context, in *os.File) (*endableInput, error) {
	wake, hold, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	unhook := context.AfterFunc(ctx, func() { _ = hold.Close() })
	return &endableInput{ctx, in, wake, func() {
		unhook()
		_ = hold.Close() // a second time when ctx has ended
		_ = wake.Close()
	}}, nil
}

// Read implements io.Reader.
func (e *endableInput) Read(b []byte) (int, error) {
	fds := []unix.PollFd{{Fd: int32(e.in.Fd()), Events: unix.POLLIN}, {Fd: int32(e.wake.Fd()), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return 0, e.ctx.Err()
		}
		return e.in.Read(b)
	}
}

func (e *endableInput) close() { e.free() }
