package private

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	// Else every process under the race detector takes a second to exit.
	os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0"))
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // the tests wait most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if copied != "" {
			os.RemoveAll(filepath.Dir(copied))
		}
		os.Exit(code)
	}))
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
