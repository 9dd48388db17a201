package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"skeletonkey/generator/job"
	"skeletonkey/generator/run"
)

// stopSignals tell the program to stop in order.
var stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}

// signalled is why a context ended.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return "stopped by " + unix.SignalName(s.signal) }

// untilSignal makes a context that the first of stopSignals ends. The second one
// ends the process at once, as if nobody listened: what does not stop in order
// can be stopped all the same. stop gives the signals back without waiting for one.
func untilSignal() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, stopSignals...)
	go func() { // ends with ctx, at the latest in the deferred stop
		defer signal.Stop(came)
		select {
		case s := <-came:
			signal.Stop(came)
			if n, ok := s.(syscall.Signal); ok {
				cancel(signalled{n})
			}
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(came)
		cancel(nil)
	}
}

// takeSignals hands the signals over to what a command runs. One that came before
// is an error: nobody would hear of it any more.
func (a *app) takeSignals(ctx context.Context) (signals <-chan os.Signal, release func(), err error) {
	taken := make(chan os.Signal, 16)
	signal.Notify(taken, run.Signals()...)
	if err := ctx.Err(); err != nil {
		signal.Stop(taken)
		return nil, nil, err
	}
	a.stop()
	return taken, func() { signal.Stop(taken) }, nil
}

// stoppedBySignal gives a failure that came of a signal the exit code of a program
// that the signal ended. Codes that a command chose stand.
func stoppedBySignal(ctx context.Context, err error) error {
	var by signalled
	var coded exitError
	if err == nil || errors.As(err, &coded) || !errors.As(context.Cause(ctx), &by) {
		return err
	}
	code := job.ExitSignal + int(by.signal)
	if errors.Is(err, context.Canceled) {
		return exitError{code, by}
	}
	return exitError{code, fmt.Errorf("%w: %w", by, err)}
}
