package private

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"
)

// helperSpec is what a helper process, the outer of a test, does.
type helperSpec struct {
	Plan  Plan   // without files and log
	Probe bool   // Probe instead of Run
	Out   string // where the helperResult goes
	LogTo string // where the log goes
}

// helperResult is what came of it.
type helperResult struct {
	Result  Result
	Error   string
	Code    int // of an ExecError or MountError
	Is      []string
	Changed bool // /proc/self/mountinfo is not what it was before
}

// known are the errors that a helperResult can name.
var known = map[string]error{
	"ErrNoNamespace": ErrNoNamespace, "ErrNoFuse": ErrNoFuse,
	"ErrNoMountPoint": ErrNoMountPoint, "ErrDied": ErrDied,
}

// ourFailure is the exit code of a helper for errors without one.
const ourFailure = 96

// helper runs a plan as a command of ours would.
func helper(file string) int {
	os.Unsetenv(helperEnv)
	text, err := os.ReadFile(file)
	var spec helperSpec
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 99
	}
	spec.Plan.Stdin, spec.Plan.Stdout, spec.Plan.Stderr = os.Stdin, os.Stdout, os.Stderr
	log, err := os.OpenFile(spec.LogTo, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 98
	}
	spec.Plan.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	before, _ := os.ReadFile("/proc/self/mountinfo")
	var out helperResult
	err = out.run(&spec)
	after, _ := os.ReadFile("/proc/self/mountinfo")
	out.Changed = string(before) != string(after)
	return out.write(spec.Out, err)
}

// run does the work.
func (r *helperResult) run(spec *helperSpec) (err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Signals()...)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if spec.Probe {
		return Probe(ctx)
	}
	r.Result, err = Run(ctx, spec.Plan, signals)
	return err
}

// write writes the result and returns the exit code.
func (r *helperResult) write(file string, err error) int {
	code := r.Result.ExitCode
	if r.Result.Signal != 0 {
		code = 128 + int(r.Result.Signal)
	}
	if err != nil {
		r.Error, code = err.Error(), ourFailure
		for name, e := range known {
			if errors.Is(err, e) {
				r.Is = append(r.Is, name)
			}
		}
		var ee *ExecError
		var me *MountError
		if errors.As(err, &ee) {
			r.Code, code = ee.ExitCode(), ee.ExitCode()
		} else if errors.As(err, &me) {
			r.Code = me.Code
		}
	}
	text, _ := json.Marshal(r)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 97
	}
	return code
}
