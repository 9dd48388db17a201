package run

import (
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/generator/job"
)

// stage is a job that can be brought to each of its phases and held there.
type stage struct {
	*running
	n     *node
	relay *chirptest.Relay // between the job and its data
	stdin *os.File         // of the job
}

// phases are the names of those that a job goes through, and how it is brought there
// and held; in unpack it is only slow. Verification is the end of the fetch, and the
// preparation for the mount the end of the unpacking.
var phases = []struct {
	name  string
	reach func(s *stage)
}{
	{"fetch", func(s *stage) { <-s.n.half }},
	{"unpack", func(s *stage) { s.logged("phase unpack") }},
	{"mount", func(s *stage) { s.logged("phase mount") }},
	{"run", func(s *stage) { s.line() }},
	{"unmount", func(s *stage) {
		s.line()
		s.relay.Pause()
		s.proceed()
		s.logged("phase unmount")
	}},
}

// stagedApp reads and writes, waits for a line, and perhaps writes again. It does not
// care for what becomes of that.
var stagedApp = script(
	`exec 8<in/data 9>out/new`,
	`setsid sleep 1000 &`,
	`read -r x <&8; echo "$x" >&9`,
	`echo running`,
	`read -r x`,
	`[ "$x" = go ] || echo more >&9 || exit 9`,
	`exit 0`,
)

// held is how long a job waits for a server that a test holds back.
const held = 20 * time.Second

// newStage starts a job that will stop at a phase, and waits so long for a server
// that is away.
func newStage(t *testing.T, phase string, user bool, patience time.Duration) *stage {
	t.Helper()
	files := map[string]string{"app.sh": stagedApp["app.sh"]}
	if phase == "unpack" {
		for i := range 1500 {
			files[fmt.Sprintf("many/%d/%d.txt", i%100, i)] = "x"
		}
	}
	n := newNode(t, files)
	n.user = user
	n.serveData()
	s := &stage{n: n, relay: chirptest.NewRelay(t, n.peer.Addr)}
	switch phase {
	case "fetch":
		n.stops()
	case "mount":
		s.relay.Pause()
	}
	j := n.job()
	j.Server, j.Dirs = s.relay.Addr, []job.Dir{{Path: "/in", Name: "in"}, {Path: "/out", Name: "out", Write: true}}
	spec := n.ticket(j)
	spec.Connect, spec.Server = patience, patience
	in, out, err := os.Pipe()
	check(t, err)
	s.stdin = out
	t.Cleanup(func() { out.Close() })
	s.running = n.start(spec, how{stdin: in, group: true})
	in.Close()
	return s
}

// proceed lets the application go on.
func (s *stage) proceed() { s.say("go") }

// say sends a line to the application.
func (s *stage) say(line string) {
	s.t.Helper()
	_, err := io.WriteString(s.stdin, line+"\n")
	check(s.t, err)
}

// eachPhase runs a test for each phase of an ordinary user's job.
func eachPhase(t *testing.T, patience time.Duration, f func(t *testing.T, s *stage, phase string)) {
	for _, p := range phases {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, p.name, true, patience)
			p.reach(s)
			f(t, s, p.name)
		})
	}
}

// slow starts a job without data that waits for a line, and waits until it does.
func (n *node) slow() *stage {
	n.t.Helper()
	in, out, err := os.Pipe()
	check(n.t, err)
	n.t.Cleanup(func() { out.Close() })
	s := &stage{n: n, stdin: out, running: n.start(helperSpec{Job: n.job()}, how{stdin: in})}
	in.Close()
	s.line()
	return s
}
