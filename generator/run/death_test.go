package run

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilled: SIGKILL to the program alone, in each phase, leaves nothing at all.
func TestKilled(t *testing.T) {
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			users(t, func(t *testing.T, user bool) {
				s := newStage(t, p.name, user, held)
				p.reach(s)
				s.signal(syscall.SIGKILL)
				if res := s.end(); res.exit != -int(syscall.SIGKILL) {
					t.Errorf("exit %d; log:\n%s", res.exit, res.log)
				}
				s.eventuallyNothing()
			})
		})
	}
}

// TestGroupKilled: when all of it is killed at once nothing is left but the scratch
// directory, and that the next job of this user sweeps, but not one of another.
func TestGroupKilled(t *testing.T) {
	eachPhase(t, held, func(t *testing.T, s *stage, phase string) {
		check(t, syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL))
		s.end()
		eventually(t, func() bool { return !strings.Contains(s.left(), "process") && !strings.Contains(s.left(), "mount") }, s.left)
		if !strings.Contains(s.left(), "file "+scratchPrefix) {
			t.Errorf("left: %s", s.left())
		}
		check(t, os.WriteFile(s.n.dir+"/next.tar", pack(t, script("exit 0")), 0o644))
		next := helperSpec{Job: s.n.job()}
		next.Job.Application.Location, next.Job.Application.SHA256 = s.n.dir+"/next.tar", ""
		if s.n.user && syscall.Geteuid() == 0 {
			s.n.user = false
			s.n.start(next, how{}).end().expect(t, 0, "")
			if !strings.Contains(s.left(), "file "+scratchPrefix) {
				t.Error("another user has swept")
			}
			s.n.user = true
		}
		s.n.run(next, how{}).expect(t, 0, "")
	})
}

// TestServingKilled: SIGKILL to the process that serves the mounts is a failure.
func TestServingKilled(t *testing.T) {
	eachPhase(t, held, func(t *testing.T, s *stage, phase string) {
		if phase == "fetch" || phase == "unpack" {
			t.Skip("there is no such process yet")
		}
		check(t, syscall.Kill(s.process("private-namespace"), syscall.SIGKILL))
		s.wait().expectError(t, 74, "died")
	})
}

// TestKeeperKilled: without its keeper a job does as well.
func TestKeeperKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t, "run", true, held)
	s.line()
	check(t, syscall.Kill(s.process(keeperArg), syscall.SIGKILL))
	s.proceed()
	s.wait().expect(t, 0, "")
	s.n.holds("/out/new", "input\n")
}

// TestServerKilled: the loss of the server, in each phase, is no success, and leaves
// nothing.
func TestServerKilled(t *testing.T) {
	eachPhase(t, time.Second, func(t *testing.T, s *stage, phase string) {
		switch phase {
		case "fetch":
			s.n.web.CloseClientConnections()
			go s.n.web.Close()
		default:
			s.n.peer.Stop()
			s.relay.Refuse()
			s.relay.Cut()
		}
		if phase == "run" {
			s.say("write")
		}
		res := s.wait()
		want := map[string][]int{"fetch": {69}, "unpack": {69}, "mount": {69}, "run": {74}, "unmount": {74}}[phase]
		for _, code := range want {
			if res.exit == code && res.error != "" {
				return
			}
		}
		t.Errorf("exit %d, want %v; error %q, log:\n%s", res.exit, want, res.error, res.log)
	})
}

// TestSideBySide: jobs of one user that live at the same time leave each other alone.
func TestSideBySide(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo running; read -r x; cat app.sh | wc -l`))
	one, two := n.slow(), n.slow()
	one.proceed()
	one.end().expect(t, 0, "2\n")
	two.proceed()
	two.wait().expect(t, 0, "2\n")
}
