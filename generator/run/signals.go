package run

import (
	"context"
	"os"
	"sync"
	"syscall"
)

// gate keeps signals until the application can have them. Until then one that asks
// for an end ends the preparations, and others wait.
type gate struct {
	out  chan os.Signal          // to private.Run
	give context.CancelCauseFunc // ends the preparations

	stop chan struct{}  // closed by close
	done sync.WaitGroup // the goroutine that reads the caller's channel

	mu    sync.Mutex // guards what follows
	open  bool
	ended bool // the preparations were given up
}

// newGate reads signals from in until close is called, and calls giveUp with a
// *signalError when one ends the preparations.
func newGate(in <-chan os.Signal, giveUp context.CancelCauseFunc) *gate {
	g := &gate{out: make(chan os.Signal, 64), give: giveUp, stop: make(chan struct{})}
	g.done.Go(func() {
		for {
			select {
			case s, ok := <-in:
				if !ok {
					return
				}
				g.take(s)
			case <-g.stop:
				return
			}
		}
	})
	return g
}

// take acts on one signal. A signal that finds the queue full is lost, as with
// signal.Notify.
func (g *gate) take(s os.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, ok := s.(syscall.Signal)
	if !g.open && ok && asksForEnd(n) {
		g.ended = true
		g.give(&signalError{n})
		return
	}
	select {
	case g.out <- s:
	default:
	}
}

// pass lets signals through from now on, those that waited first. It reports false
// when one has ended the preparations.
func (g *gate) pass() (<-chan os.Signal, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = true
	return g.out, !g.ended
}

// close stops reading the caller's channel and waits for that.
func (g *gate) close() {
	close(g.stop)
	g.done.Wait()
}

// asksForEnd says whether a signal is a wish that the job end.
func asksForEnd(s syscall.Signal) bool {
	switch s {
	case syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM:
		return true
	}
	return false
}
