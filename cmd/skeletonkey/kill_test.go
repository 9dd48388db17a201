package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lab is a data server of its own process, which can be killed, and a job on it.
type lab struct {
	t                         *testing.T
	dir, port, script         string
	server                    *exec.Cmd
	results, started, proceed string
}

// newLab starts the server and makes a job whose application writes, waits for a
// word from the test, and writes again.
func newLab(t *testing.T) *lab {
	t.Helper()
	if ok, err := condition("fuse"); err != nil {
		t.Fatal(err)
	} else if !ok {
		t.Skip("/dev/fuse is not open to everybody")
	}
	l := &lab{t: t, dir: t.TempDir(), port: freePort(t)}
	l.results = filepath.Join(l.dir, "export/results")
	l.started, l.proceed = filepath.Join(l.dir, "started"), filepath.Join(l.dir, "go")
	for _, dir := range []string{l.results, filepath.Join(l.dir, "tmp"), filepath.Join(l.dir, "dist")} {
		l.must(os.MkdirAll(dir, 0o755))
	}
	l.must(os.Link(binary, filepath.Join(l.dir, "dist/skeletonkey-linux-amd64")))
	l.serve()
	app := fmt.Sprintf(`for i in 1 2 3 4 5 6 7 8; do echo line $i; done >results/first && touch %s
until [ -e %s ]; do sleep 0.05; done
cat results/first >results/second && echo end >>results/second`, l.started, l.proceed)
	ini := fmt.Sprintf("[Server]\nlocation = 127.0.0.1:%s\n[Directories]\nwrite = results\n[Application]\nscript = /bin/sh\narguments = -e -c '%s'\n[Runtime]\nlocation = %s\n",
		l.port, strings.ReplaceAll(app, "\n", "; "), filepath.Join(l.dir, "dist"))
	l.must(os.WriteFile(filepath.Join(l.dir, "job.ini"), []byte(strings.ReplaceAll(ini, "do;", "do")), 0o600))
	l.script = filepath.Join(l.dir, "job.sh")
	out, err := exec.Command(binary, "generate", "-c", filepath.Join(l.dir, "job.ini"), "-o", l.script).CombinedOutput()
	if err != nil {
		t.Fatalf("generate: %v\n%s", err, out)
	}
	return l
}

func freePort(t *testing.T) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// serve starts the server, at once where another one was killed (case 12).
func (l *lab) serve() {
	l.t.Helper()
	ready := filepath.Join(l.dir, "ready")
	l.must(os.RemoveAll(ready))
	l.server = exec.Command(binary, "serve", "--root", filepath.Join(l.dir, "export"), "--listen", "127.0.0.1:"+l.port,
		"--state", filepath.Join(l.dir, "state"), "--port-file", ready, "-q")
	l.server.Stderr = os.Stderr
	l.must(l.server.Start())
	server := l.server
	l.t.Cleanup(func() {
		_ = server.Process.Kill() // dead already where the test killed it
		_ = server.Wait()
	})
	l.wait("the server to listen", func() bool { _, err := os.Stat(ready); return err == nil })
}

func (l *lab) killServer() {
	l.t.Helper()
	l.must(l.server.Process.Kill())
	_ = l.server.Wait() // killed
}

func (l *lab) wait(what string, until func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(time.Minute); !until(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// start runs the job until its application has written and waits.
func (l *lab) start(ctx context.Context) (*exec.Cmd, *bytes.Buffer) {
	l.t.Helper()
	job := exec.CommandContext(ctx, "sh", l.script)
	var told bytes.Buffer
	job.Stderr = &told
	job.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(l.dir, "tmp"), "SKELETONKEY_CACHE=" + filepath.Join(l.dir, "cache")}
	l.must(job.Start())
	l.wait("the application", func() bool { _, err := os.Stat(l.started); return err == nil })
	return job, &told
}

// nothingLeft is the oracle: mounts, processes and the scratch directory.
func (l *lab) nothingLeft() {
	l.t.Helper()
	l.wait("the end of "+present(l.dir+"/tmp"), func() bool { return present(l.dir+"/tmp") == "" })
	l.wait("an empty scratch directory", func() bool {
		left, err := os.ReadDir(filepath.Join(l.dir, "tmp"))
		return err == nil && len(left) == 0
	})
}

// TestServerKilledAndStartedAgain kills the server with SIGKILL in the middle of a
// job: the job waits for the new one, and every byte is there.
func TestServerKilledAndStartedAgain(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, told := l.start(ctx)
	l.killServer()
	l.must(os.WriteFile(l.proceed, nil, 0o644))
	l.serve()
	if err := job.Wait(); err != nil {
		t.Fatalf("job: %v\n%s", err, told)
	}
	first, _ := os.ReadFile(filepath.Join(l.results, "first"))
	second, _ := os.ReadFile(filepath.Join(l.results, "second"))
	if string(second) != string(first)+"end\n" || strings.Count(string(first), "\n") != 8 {
		t.Errorf("first %q, second %q", first, second)
	}
	l.nothingLeft()
}

// TestServerKilledForGood ends a job whose server does not come back: no success,
// and nothing left.
func TestServerKilledForGood(t *testing.T) {
	l := newLab(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	job, told := l.start(ctx)
	l.killServer()
	l.must(job.Process.Signal(syscall.SIGTERM))
	err := job.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 128+int(syscall.SIGTERM) {
		t.Errorf("job: %v\n%s", err, told)
	}
	l.nothingLeft()
}

// TestServerKilledBeforeTheJob finds no server when the job begins.
func TestServerKilledBeforeTheJob(t *testing.T) {
	l := newLab(t)
	l.killServer()
	job := exec.CommandContext(t.Context(), "sh", l.script)
	job.Env = []string{"PATH=/usr/bin:/bin", "TMPDIR=" + filepath.Join(l.dir, "tmp"), "SKELETONKEY_CACHE=" + filepath.Join(l.dir, "cache")}
	l.must(job.Start())
	time.AfterFunc(2*time.Second, func() { _ = job.Process.Signal(syscall.SIGTERM) })
	if err := job.Wait(); err == nil {
		t.Error("the job reports success without a server")
	}
	l.nothingLeft()
}
