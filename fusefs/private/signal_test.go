package private

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// counting is a script that says every signal that it gets, until there is a
// file stop.
const counting = `for s in HUP INT QUIT TERM USR1 USR2 CONT WINCH; do trap "echo $s" $s; done
echo ready; while [ ! -e $TEST_DIR/stop ]; do sleep 0.02; done; exit 5`

// stop ends counting.
func (r *helping) stop() outcome {
	r.t.Helper()
	check(r.t, os.WriteFile(r.dir+"/stop", nil, 0o666))
	return r.wait()
}

// TestSignalsForwarded: a signal to the outer alone reaches the command, once
// (case 37).
func TestSignalsForwarded(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: script(counting)}.of(v).start(t)
		if got := r.line(); got != "ready" {
			t.Fatalf("got %q", got)
		}
		for _, s := range Signals() {
			r.signal(s.(syscall.Signal))
			if got, want := r.line(), strings.TrimPrefix(unix.SignalName(s.(syscall.Signal)), "SIG"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		time.Sleep(2 * grace) // for what must not come
		r.stop().expect(t, 5, "")

		r = job{plan: script("echo; exec sleep 1000")}.of(v).start(t)
		r.line()
		r.signal(syscall.SIGTERM)
		if o := r.wait(); o.exit != 128+15 || o.Result.Signal != syscall.SIGTERM || o.Error != "" {
			t.Errorf("exit %d, %+v", o.exit, o.helperResult)
		}
	})
}

// TestSignalToGroup: one that the whole process group gets arrives once too.
func TestSignalToGroup(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: script(counting), attr: syscall.SysProcAttr{Setpgid: true}}.of(v).start(t)
		if got := r.line(); got != "ready" {
			t.Fatalf("got %q", got)
		}
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGUSR1} {
			check(t, syscall.Kill(-r.cmd.Process.Pid, s))
			if got, want := r.line(), strings.TrimPrefix(unix.SignalName(s), "SIG"); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		time.Sleep(3 * grace) // for what must not come
		r.stop().expect(t, 5, "")
	})
}

// TestControllingTerminal: Ctrl-C reaches the command once, and it can read
// from the terminal.
func TestControllingTerminal(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		master, slave := terminal(t)
		p := script("read x </dev/tty; echo got $x; " + counting)
		// The shell of the setup must not get in between: stdin is the terminal.
		r := job{plan: p, stdin: slave, attr: syscall.SysProcAttr{Setsid: true, Setctty: true}}.of(v).start(t)
		slave.Close()
		_, err := master.WriteString("word\n")
		check(t, err)
		if got := r.line() + " " + r.line(); got != "got word ready" {
			t.Fatalf("got %q", got)
		}
		_, err = master.WriteString("\x03")
		check(t, err)
		if got := r.line(); got != "INT" {
			t.Errorf("got %q", got)
		}
		time.Sleep(3 * grace)
		r.stop().expect(t, 5, "")
	})
}

// terminal returns both sides of a new pseudo terminal.
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	check(t, err)
	check(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	name := fmt.Sprintf("/dev/pts/%d", n)
	if os.Geteuid() == 0 {
		check(t, os.Chmod(name, 0o666))
	}
	slave, err = os.OpenFile(name, os.O_RDWR|unix.O_NOCTTY, 0)
	check(t, err)
	return master, slave
}

// TestNohup: what the caller had set to be ignored stays so.
func TestNohup(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, user := range []bool{false, true} {
		o := job{user: user, setup: "trap '' HUP", plan: script("kill -HUP $$; echo alive")}.run(t)
		o.expect(t, 0, "alive\n")
	}
}

// TestSignalWhilePreparing: the preparations end, and that is no success; what
// is no wish to end waits for the command.
func TestSignalWhilePreparing(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		r := job{plan: withConfig(testConfig{Serve: "wait"}, "true")}.of(v).start(t)
		r.logged("waiting")
		r.signal(syscall.SIGUSR1)
		r.signal(syscall.SIGTERM)
		o := r.wait()
		if o.exit != 128+15 || o.Result.Started || o.Result.Signal != syscall.SIGTERM || o.Error != "" {
			t.Errorf("exit %d, %+v", o.exit, o.helperResult)
		}
	})
}
