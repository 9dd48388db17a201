package run

import (
	"os"
	"syscall"
	"testing"
	"time"

	"skeletonkey/generator/job"
)

// exec returns what runs a shell script with mounts.
func (n *node) exec(text string, mounts ...ExecMount) helperSpec {
	return helperSpec{
		Exec:    &execSpec{Mounts: mounts, Argv: []string{"sh", "-c", text, "sh", "two words"}},
		Connect: held, Server: held,
	}
}

// TestExec: a command sees each server at its place, as the user who runs it.
func TestExec(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, nil)
		n.user = user
		spec := n.dataJob() // a ticket, as only who runs the server is let in by unix
		check(t, os.MkdirAll(n.peer.Root+"/in/deep/er", 0o755))
		check(t, os.Mkdir(n.dir+"/place", 0o777))
		s := n.exec(`cat "$CHIRP_MOUNT/in/data"; ls "$CHIRP_MOUNT"; echo "$1" >"$CHIRP_MOUNT/out/new"; ls `+n.dir+`/place
			(: >/mnt-of-mine/new) 2>/dev/null && echo wrote; ls /mnt-of-mine; echo "$CHIRP_MOUNT"; exit 4`,
			ExecMount{Server: n.peer.Addr},
			ExecMount{Server: n.peer.Addr, Path: "/in/deep", Where: n.dir + "/place"},
			ExecMount{Server: n.peer.Addr, Path: "/out", Where: "/mnt-of-mine", ReadOnly: true},
		)
		s.Ticket = spec.Ticket
		n.run(s, how{}).expect(t, 4, "input\nin\nout\ner\nnew\n/chirp/"+n.peer.Addr+"\n")
		n.holds("/out/new", "two words\n")
		if exists("/mnt-of-mine") {
			t.Error("a place was made outside")
		}
	})
}

// TestExecAsOwner: who runs the server needs no ticket, and sees all of it.
func TestExecAsOwner(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.dataJob()
	n.run(n.exec(`ls "$CHIRP_MOUNT"; cat "$CHIRP_MOUNT/in/data"`, ExecMount{Server: n.peer.Addr}), how{}).
		expect(t, 0, "in\nout\ninput\n")
}

// TestExecSignals: signals, kills and exit codes are as those of jobs.
func TestExecSignals(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.dataJob()
	text := `trap 'echo got; exit 5' USR1; setsid sleep 1000 & echo ready; while :; do sleep 0.02; done`
	for _, noPID := range []bool{false, true} {
		s := n.exec(text, ExecMount{Server: n.peer.Addr})
		s.Exec.NoPID = noPID
		r := n.start(s, how{})
		r.line()
		r.signal(syscall.SIGUSR1)
		r.wait().expect(t, 5, "got\n")

		r = n.start(s, how{})
		r.line()
		r.signal(syscall.SIGKILL)
		r.end()
		r.eventuallyNothing()
	}
}

// TestExecFails: what ends a command before it starts has a code of its own.
func TestExecFails(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	spec := n.dataJob()
	mount := ExecMount{Server: n.peer.Addr}
	with := func(s helperSpec, change func(s *helperSpec)) helperSpec {
		change(&s)
		return s
	}
	for _, c := range []struct {
		spec helperSpec
		exit int
		text string
	}{
		{with(n.exec("echo never", mount), func(s *helperSpec) { s.Exec.Argv = nil }), job.ExitUsage, "no command"},
		{with(n.exec("echo never", mount), func(s *helperSpec) { s.Exec.Argv = []string{"/missing"} }), 127, "/missing"},
		{with(n.exec("echo never", mount), func(s *helperSpec) { s.Exec.Argv = []string{"/"} }), 126, "/"},
		{with(n.exec("echo never", mount), func(s *helperSpec) { s.Exec.Auth = "magic" }), job.ExitUsage, "magic"},
		{with(n.exec("echo never", mount), func(s *helperSpec) { s.Exec.Auth = "ticket" }), job.ExitTicket, "no ticket"},
		{n.exec("echo never", ExecMount{Server: n.peer.Addr, Path: "/in/missing"}), job.ExitUsage, "/in/missing: no such file"},
		{n.exec("echo never", ExecMount{Server: n.peer.Addr, Path: "/in/data"}), job.ExitUsage, "/in/data: not a directory"},
		{n.exec("echo never", ExecMount{Server: n.peer.Addr, Where: "/proc/missing"}), job.ExitUsage, "mount at /proc/missing: "},
		{with(n.exec("echo never", ExecMount{Server: "127.0.0.1:1"}), func(s *helperSpec) { s.Connect = 200 * time.Millisecond }),
			job.ExitUnreachable, "127.0.0.1:1 has not answered"},
		{with(n.exec("echo never", ExecMount{Server: n.peer.Addr, Path: "/other"}), func(s *helperSpec) {
			check(t, os.Mkdir(n.peer.Root+"/other", 0o755))
			s.Ticket, s.Exec.Auth = spec.Ticket, "ticket"
		}), job.ExitTicket, "/other: not authorized"},
	} {
		n.run(c.spec, how{}).expectError(t, c.exit, c.text)
	}
}
