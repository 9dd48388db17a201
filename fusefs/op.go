package fusefs

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// How an interrupt ends a request: a signal that ends the process does so at once;
// one that the process handles does when the request has lasted that much longer.
// (The kernel tells of every signal alike, while a local disk lets handled ones wait
// until it is done: programs with timers do not expect stat to fail with EINTR.)
const (
	handledGrace = 2 * time.Second
	signalPoll   = 50 * time.Millisecond
)

// op is one request of the kernel, as the context of all that is done for it. Its
// Done is closed when the request is to be given up: it was interrupted, or the
// mount is being aborted.
type op struct {
	context.Context
	fs   *FS
	keep bool // handled signals never end it

	once sync.Once
	done chan struct{}
	over chan struct{} // closed by end

	mu  sync.Mutex
	err error
}

// begin makes the op of a request; end must be called when it has been dealt with.
func (f *FS) begin(ctx context.Context) *op {
	return &op{Context: ctx, fs: f, done: make(chan struct{}), over: make(chan struct{})}
}

// beginWrite makes the op of a request whose early end would lose the report of what
// happened to data: only a signal that ends the process ends it.
func (f *FS) beginWrite(ctx context.Context) *op {
	o := f.begin(ctx)
	o.keep = true
	return o
}

func (o *op) end() { close(o.over) }

// Done starts the goroutine that watches for the request's end; it ends with the op.
func (o *op) Done() <-chan struct{} {
	o.once.Do(func() {
		o.fs.work.Add(1)
		go o.watch()
	})
	return o.done
}

// Err says why Done is closed.
func (o *op) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *op) giveUp(err error) {
	o.mu.Lock()
	o.err = err
	o.mu.Unlock()
	close(o.done)
}

func (o *op) watch() {
	defer o.fs.work.Done()
	select {
	case <-o.over:
		return
	case <-o.fs.aborted:
		o.giveUp(errAborted)
		return
	case <-o.Context.Done():
	}
	var grace <-chan time.Time
	if !o.keep {
		grace = time.After(handledGrace)
	}
	poll := time.NewTicker(signalPoll)
	defer poll.Stop()
	for !o.dying() {
		select {
		case <-o.over:
			return
		case <-o.fs.aborted:
			o.giveUp(errAborted)
			return
		case <-grace:
			o.giveUp(syscall.EINTR)
			return
		case <-poll.C:
		}
	}
	o.giveUp(syscall.EINTR)
}

// dying reports whether the thread that waits is about to end. One that cannot be
// looked at counts as such.
func (o *op) dying() bool {
	caller, ok := fuse.FromContext(o.Context)
	if !ok {
		return true
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", caller.Pid))
	return err != nil || fatalPending(text)
}

// ignoredByDefault are the signals that do not end a process which does not handle
// them, or stop it.
var ignoredByDefault = sigset(syscall.SIGCHLD, syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH,
	syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGSTOP)

func sigset(signals ...syscall.Signal) uint64 {
	var set uint64
	for _, s := range signals {
		set |= 1 << (s - 1)
	}
	return set
}

// fatalPending reads a thread's status in /proc: does a signal wait for it that it
// neither blocks nor ignores nor handles?
func fatalPending(status []byte) bool {
	var pending, kept uint64
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		set, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 16, 64)
		if err != nil {
			continue
		}
		switch string(name) {
		case "SigPnd", "ShdPnd":
			pending |= set
		case "SigBlk", "SigIgn", "SigCgt":
			kept |= set
		}
	}
	return pending&^(kept|ignoredByDefault) != 0
}
