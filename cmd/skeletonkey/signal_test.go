package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"skeletonkey/generator/job"
)

// TestSignalBeforeTheCommand has a signal come before exec has taken the signals
// over: the command must not start, as nobody would tell it.
func TestSignalBeforeTheCommand(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(signalled{syscall.SIGTERM})
	a := &app{in: null, out: null, err: null, stop: func() { t.Error("the signals were handed over") }}
	if code := a.execute(ctx, []string{"exec", "--server", "127.0.0.1:1", "--", "true"}); code != 143 {
		t.Errorf("exit code %d", code)
	}
}

func TestStoppedBySignal(t *testing.T) {
	stopped, cancel := context.WithCancelCause(t.Context())
	cancel(signalled{syscall.SIGINT})
	ended, end := context.WithCancel(t.Context())
	end()
	full := errors.New("disk full")
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		text string
	}{
		"success stands":         {stopped, nil, 0, ""},
		"what the signal undid":  {stopped, fmt.Errorf("given up: %w", context.Canceled), 130, "stopped by SIGINT"},
		"another failure too":    {stopped, full, 130, "stopped by SIGINT: disk full"},
		"a code that was chosen": {stopped, exitError{job.ExitNotWritten, full}, 74, "disk full"},
		"no signal":              {ended, full, 0, "disk full"},
	} {
		t.Run(name, func(t *testing.T) {
			err := stoppedBySignal(test.ctx, test.err)
			var coded exitError
			errors.As(err, &coded)
			if got := fmt.Sprint(err); coded.code != test.code || err != nil && got != test.text {
				t.Errorf("code %d, %q", coded.code, got)
			}
		})
	}
}
