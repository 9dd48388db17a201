package private

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"go.uber.org/goleak"
)

// helperEnv names, in a child's environment, the file with its helperSpec.
const helperEnv = "PRIVATE_TEST_HELPER"

// TestMain lets the test binary be the inner process, the launcher, and a
// program that calls Run.
func TestMain(m *testing.M) {
	if IsInner() {
		os.Exit(Main(serveTest))
	}
	if file := os.Getenv(helperEnv); file != "" {
		os.Exit(helper(file))
	}
	goleak.VerifyTestMain(m)
}

// testConfig is the Config of the test's mounts.
type testConfig struct {
	Serve string // "": serve; "error", "panic", "wait": instead of it
	Close string // "": as it should be; "error", "panic", "hang"
	Hello string // content of the file hello
}

// codedError has an exit code of its own.
type codedError struct{ text string }

func (e codedError) Error() string { return e.text }
func (e codedError) ExitCode() int { return 77 }

// testServer is a go-fuse file system in memory.
type testServer struct {
	cfg testConfig
	srv *fuse.Server
	log *slog.Logger
}

// serveTest is the ServeFunc of the tests.
func serveTest(ctx context.Context, log *slog.Logger, m Mount) (Server, error) {
	var cfg testConfig
	if err := json.Unmarshal(m.Config, &cfg); err != nil {
		return nil, err
	}
	switch cfg.Serve {
	case "error":
		return nil, fmt.Errorf("wrapped: %w", codedError{"no such server"})
	case "panic":
		panic("serve")
	case "wait":
		log.Info("waiting")
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	root := &fs.Inode{}
	opts := &fs.Options{
		OnAdd: func(ctx context.Context) {
			add := func(name string, mode uint32, text string) {
				f := &fs.MemRegularFile{Data: []byte(text), Attr: fuse.Attr{Mode: mode, Owner: *fuse.CurrentOwner()}}
				root.AddChild(name, root.NewPersistentInode(ctx, f, fs.StableAttr{}), true)
			}
			add("hello", 0o644, cfg.Hello)
			add("data", 0o666, "")
			add("prog", 0o755, "#!/bin/sh\necho prog \"$@\"\n")
		},
	}
	opts.DirectMountStrict = true
	opts.DisableSplice = true
	opts.FsName, opts.Name = "test", "private"
	opts.AllowOther = os.Geteuid() == 0
	srv, err := fs.Mount(m.Where, root, opts)
	if err != nil {
		return nil, err
	}
	return &testServer{cfg: cfg, srv: srv, log: log}, nil
}

// Close unmounts, and fails as the config says.
func (s *testServer) Close(context.Context) error {
	switch s.cfg.Close {
	case "hang":
		select {}
	case "panic":
		panic("close")
	}
	if err := s.srv.Unmount(); err != nil {
		return err
	}
	s.log.Info("closed")
	if s.cfg.Close == "error" {
		return codedError{"data could not be written back"}
	}
	return nil
}

// helperSpec is what a helper process does.
type helperSpec struct {
	Plan  Plan   // without files and log
	Setup string // a shell script that is run first
	Probe bool   // Probe instead of Run
	Out   string // where the helperResult goes
	LogTo string // where the log goes
}

// helperResult is what came of it.
type helperResult struct {
	Result Result
	Error  string
	Code   int // of an ExecError or MountError
	Is     []string
}

// known are the errors that a helperResult can name.
var known = map[string]error{
	"ErrNoNamespace": ErrNoNamespace, "ErrNoFuse": ErrNoFuse,
	"ErrNoMountPoint": ErrNoMountPoint, "ErrDied": ErrDied,
}

// helper is the outer process of a test that cannot be one itself. It exits as
// a command of ours would.
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
	if spec.Setup != "" {
		if err := sh(spec.Setup); err != nil {
			fmt.Fprintln(os.Stderr, "helper: setup:", err)
			return 98
		}
	}
	spec.Plan.Stdin, spec.Plan.Stdout, spec.Plan.Stderr = os.Stdin, os.Stdout, os.Stderr
	log, err := os.OpenFile(spec.LogTo, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 97
	}
	spec.Plan.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Signals()...)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var out helperResult
	if spec.Probe {
		err = Probe(ctx)
	} else {
		out.Result, err = Run(ctx, spec.Plan, signals)
	}
	return out.write(spec.Out, err)
}

// write writes the result and returns the exit code.
func (r *helperResult) write(file string, err error) int {
	code := r.Result.ExitCode
	if r.Result.Signal != 0 {
		code = 128 + int(r.Result.Signal)
	}
	if err != nil {
		r.Error, code = err.Error(), 96
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
		return 95
	}
	return code
}

// sh runs a shell script.
func sh(script string) error {
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-ec", script}, &os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
	if err != nil {
		return err
	}
	st, err := p.Wait()
	if err == nil && !st.Success() {
		err = errors.New(st.String())
	}
	return err
}

// plan returns a Plan with one test mount.
func plan(where string, argv ...string) Plan {
	cfg, _ := json.Marshal(testConfig{Hello: "hello, world\n"})
	return Plan{Argv: argv, Mounts: []Mount{{Where: where, Config: cfg}}}
}
