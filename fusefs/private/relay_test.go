package private

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

const (
	sigTERM = syscall.SIGTERM
	sigUSR1 = syscall.SIGUSR1
	sigQUIT = syscall.SIGQUIT
)

// late is how long the marker takes: the machine is busy.
const late = 3 * grace

// relayed is a relay whose signals are written down.
func relayed() (r *relay, sent *[]string) {
	sent = new([]string)
	note := func(text string) { *sent = append(*sent, text) }
	r = newRelay(func() { note("abort") }, func(pid int, s syscall.Signal) { note(fmt.Sprint(pid, " ", int(s))) },
		func() error {
			time.AfterFunc(late, func() { r.gotDirectly(marker) })
			return nil
		})
	return r, sent
}

// TestRelay: what comes to the command when what comes to us.
func TestRelay(t *testing.T) {
	launch := func(r *relay) { _, _ = r.launch(func() (int, error) { return 7, nil }) }
	run := func(r *relay) { launch(r); r.started() }
	reap := func(r *relay) { r.reap(func(command int) bool { return command == 7 }) }
	forward := func(s syscall.Signal) func(*relay) { return func(r *relay) { r.forward(s) } }
	direct := func(s syscall.Signal) func(*relay) { return func(r *relay) { r.gotDirectly(s) } }
	wait := func(d time.Duration) func(*relay) { return func(*relay) { time.Sleep(d) } }
	for _, c := range []struct {
		name  string
		steps []func(*relay)
		sent  []string
	}{
		{"outer alone", []func(*relay){run, forward(sigTERM)}, []string{"7 15"}},
		{"twice", []func(*relay){run, forward(sigTERM), wait(2 * late), forward(sigTERM)}, []string{"7 15", "7 15"}},
		{"two kinds", []func(*relay){run, forward(sigTERM), wait(late + 1), forward(sigUSR1)}, []string{"7 15", "7 10"}},
		{"group, us first", []func(*relay){run, direct(sigTERM), forward(sigTERM)}, nil},
		{"group, outer first", []func(*relay){run, forward(sigTERM), wait(late + grace/2), direct(sigTERM)}, nil},
		{"group, we before the marker", []func(*relay){run, forward(sigTERM), wait(late / 2), direct(sigTERM)}, nil},
		{"group, the outer late", []func(*relay){run, direct(sigTERM), wait(memory / 2), forward(sigTERM)}, nil},
		{"group, while preparing", []func(*relay){direct(sigUSR1), forward(sigUSR1), run, forward(sigUSR1)}, []string{"7 10", "7 10"}},
		{"group, then outer alone", []func(*relay){run, direct(sigTERM), forward(sigTERM), forward(sigTERM)}, []string{"7 15"}},
		{"other kind", []func(*relay){run, direct(sigUSR1), forward(sigTERM)}, []string{"7 15"}},
		{"us alone, long ago", []func(*relay){run, direct(sigTERM), wait(2 * memory), forward(sigTERM)}, []string{"7 15"}},
		{"while preparing", []func(*relay){forward(sigTERM), forward(sigQUIT), launch}, []string{"abort"}},
		{"kept for the command", []func(*relay){forward(sigUSR1), launch, wait(2 * late), (*relay).started}, []string{"7 10"}},
		{"launcher", []func(*relay){launch, forward(sigQUIT), wait(1), forward(sigTERM), wait(2 * late), (*relay).started}, []string{"7 15", "7 3"}},
		{"after the end", []func(*relay){run, forward(sigTERM), reap, forward(sigUSR1)}, nil},
		{"never began", []func(*relay){launch, reap, (*relay).started, forward(sigTERM)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, sent := relayed()
				for _, step := range c.steps {
					step(r)
				}
				time.Sleep(2 * late)
				synctest.Wait()
				if !slices.Equal(*sent, c.sent) {
					t.Errorf("sent %q, want %q", *sent, c.sent)
				}
			})
		})
	}
}
