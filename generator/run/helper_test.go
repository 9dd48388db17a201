package run

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/generator/job"
)

// helperEnv names, in a child's environment, the file with its helperSpec.
const helperEnv = "RUN_TEST_HELPER"

// helperSpec is what a helper process, the `skeletonkey run` of a test, does.
type helperSpec struct {
	Job       *job.Job
	Ticket    string
	UserProxy []byte
	Args      []string
	Preserve  bool
	Connect   time.Duration
	Server    time.Duration
	Exec      *execSpec // Exec instead of Run
	LogTo     string    // where the log goes
	ErrorTo   string    // where the error goes, if there is one
}

// execSpec is what a helper process does that is the `skeletonkey exec` of a test.
type execSpec struct {
	Mounts []ExecMount
	Argv   []string
	Auth   string
	NoPID  bool
}

// run runs the command, with what it shares with a job.
func (e *execSpec) run(o Options) (int, error) {
	x := ExecOptions{
		Mounts: e.Mounts, Argv: e.Argv, Auth: e.Auth, NoPIDNamespace: e.NoPID,
		ConnectTimeout: o.ConnectTimeout, ServerTimeout: o.ServerTimeout,
		Log: o.Log, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr, Signals: o.Signals,
	}
	if o.Ticket != nil {
		x.Tickets = []*auth.Ticket{o.Ticket}
	}
	return Exec(context.Background(), x)
}

// helper runs a job as the command does.
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
	log, err := os.OpenFile(spec.LogTo, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 98
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Signals()...)
	o := Options{
		Job: spec.Job, UserProxy: spec.UserProxy, Args: spec.Args, PreserveDir: spec.Preserve,
		ConnectTimeout: spec.Connect, ServerTimeout: spec.Server,
		Log:   slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals,
	}
	if spec.Ticket != "" {
		if o.Ticket, err = auth.ParseTicket([]byte(spec.Ticket)); err != nil {
			fmt.Fprintln(os.Stderr, "helper:", err)
			return 97
		}
	}
	var code int
	if spec.Exec != nil {
		code, err = spec.Exec.run(o)
	} else {
		code, err = Run(context.Background(), o)
	}
	if err != nil {
		_ = os.WriteFile(spec.ErrorTo, []byte(err.Error()), 0o644)
	}
	return code
}
