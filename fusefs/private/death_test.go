package private

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLeftBehind: when the command ends, what it left dies.
func TestLeftBehind(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		p := script("setsid sleep 1000 & (setsid sh -c 'sleep 1001 & sleep 1002' &) ; trap '' TERM HUP; sleep 1003 & exec 9<" + where + "/hello; sleep 0.1; exit 4")
		job{plan: p}.of(v).run(t).expect(t, 4, "")
	})
}

// stubborn is a command with a descendant that has left group and session.
const stubborn = "trap '' TERM HUP INT; setsid sh -c 'trap \"\" TERM HUP; echo there; sleep 1000' & cat " + where + "/hello; sleep 1001; echo late"

// ready waits until stubborn runs, in whatever order its lines come.
func (r *helping) ready() {
	r.t.Helper()
	if got := r.line() + r.line(); len(got) != len("there"+"hello, world") {
		r.t.Fatalf("got %q", got)
	}
}

// TestOuterKilled: SIGKILL to the outer alone takes all with it.
func TestOuterKilled(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: script(stubborn)}.of(v).start(t)
		r.ready()
		r.signal(syscall.SIGKILL)
		r.eventuallyGone()
		if o := r.wait(); o.stdout != "" {
			t.Errorf("output %q", o.stdout)
		}
	})
}

// TestInnerKilled: SIGKILL to the serving process is a failure, never success.
func TestInnerKilled(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: script(stubborn)}.of(v).start(t)
		r.ready()
		check(t, syscall.Kill(r.inner(), syscall.SIGKILL))
		o := r.wait()
		o.expectError(t, "ErrDied", "killed")
		if o.stdout != "" {
			t.Errorf("output %q", o.stdout)
		}
	})
}

// inner returns the serving process's number.
func (r *helping) inner() int {
	r.t.Helper()
	for pid, args := range r.processes() {
		if strings.Contains(args, innerArg) {
			return pid
		}
	}
	r.t.Fatalf("no serving process among %v", r.processes())
	return 0
}

// TestKilledWhilePreparing: the same while a mount is being made.
func TestKilledWhilePreparing(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: withConfig(testConfig{Serve: "wait"}, "true")}.of(v).start(t)
		r.logged("waiting")
		r.signal(syscall.SIGKILL)
		r.eventuallyGone()

		r = job{plan: withConfig(testConfig{Serve: "wait"}, "true")}.of(v).start(t)
		r.logged("waiting")
		check(t, syscall.Kill(r.inner(), syscall.SIGKILL))
		r.wait().expectError(t, "ErrDied", "")
	})
}

// logged waits until the log says something.
func (r *helping) logged(text string) {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(r.log(), text); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("the log never said %q: %s", text, r.log())
		}
	}
}

// TestCancelled: the end of the context ends everything at once.
func TestCancelled(t *testing.T) {
	needRoot(t)
	for _, mode := range []PIDMode{PIDAuto, PIDNever} {
		r, w, err := os.Pipe()
		check(t, err)
		p := script("echo $$; trap '' TERM; setsid sleep 1000 & sleep 1001")
		p.PIDNamespace, p.Stdout = mode, w
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		gone := errors.New("no longer wanted")
		ctx, stop := context.WithCancelCause(ctx)
		go func() {
			defer r.Close()
			buf := make([]byte, 16)
			_, _ = r.Read(buf)
			stop(gone)
		}()
		res, err := Run(ctx, p, nil)
		cancel()
		w.Close()
		if !errors.Is(err, gone) {
			t.Errorf("result %+v, error %v", res, err)
		}
		if killDescendants() {
			t.Error("processes left")
		}
		if _, err := Run(ctx, p, nil); !errors.Is(err, gone) {
			t.Errorf("with a context that has ended: %v", err)
		}
	}
}

// TestServerFails: failures of the file system are ours, and none is success.
func TestServerFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cfg     testConfig
		text    string
		code    int
		started bool
	}{
		{testConfig{Serve: "error"}, "mount " + where + ": wrapped: no such server", 77, false},
		{testConfig{Serve: "panic"}, "mount " + where + ": panic: serve", 0, false},
		{testConfig{Close: "error"}, "unmount " + where + ": data could not be written back", 77, true},
		{testConfig{Close: "panic"}, "unmount " + where + ": panic: close", 0, true},
		{testConfig{Close: "hang"}, "may not have been written back", 0, true},
	} {
		t.Run(c.cfg.Serve+c.cfg.Close, func(t *testing.T) {
			t.Parallel()
			p := withConfig(c.cfg, "true")
			p.CloseTimeout = time.Second
			o := job{plan: p, user: true}.run(t)
			o.expectError(t, "", c.text)
			if o.Code != c.code || o.Result.Started != c.started || o.Result.ExitCode != 0 {
				t.Errorf("code %d, result %+v", o.Code, o.Result)
			}
		})
	}
}

// TestParentOf: names of processes do not mislead.
func TestParentOf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := dir + "/a) Z 1 (b"
	sleep, err := exec.LookPath("sleep")
	check(t, err)
	check(t, os.Symlink(sleep, name))
	p, err := os.StartProcess(name, []string{"x", "100"}, &os.ProcAttr{})
	check(t, err)
	defer func() { _, _ = p.Wait() }()
	defer func() { _ = p.Kill() }()
	if stat, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/stat"); err != nil || !strings.Contains(string(stat), ") Z 1 (") {
		t.Fatalf("stat %q, %v", stat, err)
	}
	if parent, ok := parentOf(p.Pid); !ok || parent != os.Getpid() {
		t.Errorf("parent %d, %v", parent, ok)
	}
}
