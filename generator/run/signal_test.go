package run

import (
	"context"
	"os"
	"syscall"
	"testing"

	"skeletonkey/generator/job"
)

// TestSignals is case 37: signals to the program alone reach the application, once
// each; its end is waited for, and its exit code is the job's.
func TestSignals(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(
			`for s in HUP INT USR1 USR2 TERM; do trap "echo $s" $s; done`,
			`trap 'echo last >out/last; exit 3' QUIT`,
			`echo ready`,
			`while :; do sleep 0.02; done`,
		))
		n.user = user
		r := n.start(n.dataJob(), how{})
		r.line()
		for name, s := range map[string]syscall.Signal{
			"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "TERM": syscall.SIGTERM,
		} {
			r.signal(s)
			if got := r.line(); got != name {
				t.Errorf("%s arrived as %s", name, got)
			}
		}
		r.signal(syscall.SIGQUIT)
		r.wait().expect(t, 3, "")
		n.holds("/out/last", "last\n")
	})
}

// TestSignalEnds: what an application does not catch ends it, and the job says so.
func TestSignalEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo ready; exec sleep 1000`))
	r := n.start(n.dataJob(), how{})
	r.line()
	r.signal(syscall.SIGTERM)
	r.wait().expect(t, 143, "")
}

// TestSignalInFetch is the rest of case 37: before the application runs, a wish to
// end ends the job, and other signals wait for the application.
func TestSignalInFetch(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			n := newNode(t, script(`echo never`))
			n.stops()
			r := n.start(helperSpec{Job: n.job()}, how{})
			<-n.half
			r.signal(s)
			r.wait().expectError(t, 128+int(s), "before the application was started")
		})
	}
	t.Run("SIGUSR1", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, script(`sleep 1000`))
		n.stops()
		r := n.start(helperSpec{Job: n.job()}, how{})
		<-n.half
		r.signal(syscall.SIGUSR1)
		close(n.gate)
		res := r.wait() // of this application such a signal is the end
		res.expect(t, 128+int(syscall.SIGUSR1), "")
		if res.error != "" {
			t.Errorf("error %q", res.error)
		}
	})
}

// TestGate: signals that wait are passed on in order, and one that ends the
// preparations is not.
func TestGate(t *testing.T) {
	t.Parallel()
	in := make(chan os.Signal, 4)
	ctx, giveUp := context.WithCancelCause(context.Background())
	g := newGate(in, giveUp)
	g.take(syscall.SIGUSR1)
	g.take(syscall.SIGWINCH)
	out, ok := g.pass()
	in <- syscall.SIGTERM
	for _, want := range []os.Signal{syscall.SIGUSR1, syscall.SIGWINCH, syscall.SIGTERM} {
		if got := <-out; got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
	g.close()
	if !ok || ctx.Err() != nil {
		t.Errorf("given up: %v", ctx.Err())
	}

	g = newGate(nil, giveUp)
	g.take(syscall.SIGTERM)
	_, ok = g.pass()
	g.close()
	if code := ExitCode(failed(ctx, job.ExitInternal, ctx.Err())); ok || code != 143 {
		t.Errorf("passed %v, code %d", ok, code)
	}
}
