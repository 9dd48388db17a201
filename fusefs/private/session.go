package private

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// session is the outer's side of one inner process.
type session struct {
	plan    *Plan
	way     way
	link    *link
	proc    *os.Process
	mountNS *os.File              // without a PID namespace: by it the inner's processes are known; or nil
	exited  chan *os.ProcessState // one value
	reports chan report           // at most one value; closed at the link's end
}

// run goes this way once. A failure that is not nil says that another way may
// work; nothing has been started then.
func (w way) run(ctx context.Context, plan *Plan, signals <-chan os.Signal, probe bool) (Result, *failure, error) {
	if err := context.Cause(ctx); err != nil {
		return Result{}, nil, err
	}
	s, err := w.start(ctx, plan, probe)
	if err != nil {
		return Result{}, failed(kindNamespace, "start a process with a "+w.String(), err), nil
	}
	rep, err := s.wait(ctx, signals)
	if err != nil {
		return Result{Way: w.String()}, nil, err
	}
	var errs []error
	for _, f := range rep.Failures {
		if f.Kind == kindNamespace || f.Kind == kindProc {
			return Result{}, f, nil
		}
		errs = append(errs, f.public())
	}
	res := Result{Started: rep.Started, ExitCode: rep.ExitCode, Signal: rep.Signal, Way: w.String()}
	return res, nil, errors.Join(errs...)
}

// start starts an inner process.
func (w way) start(ctx context.Context, plan *Plan, probe bool) (*session, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	spec, err := pack(plan.inner(w, probe, lowestLevel(ctx, plan.Log)))
	if err != nil {
		return nil, err
	}
	defer spec.Close()
	ours, theirs, err := newLink()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	files := []*os.File{plan.Stdin, plan.Stdout, plan.Stderr, theirs, spec}
	for i, f := range files {
		if f == nil {
			files[i] = null
		}
	}
	s := &session{plan: plan, way: w, link: ours, exited: make(chan *os.ProcessState, 1), reports: make(chan report, 1)}
	if err := s.spawn(files); err != nil {
		ours.f.Close()
		return nil, err
	}
	go s.listen(ctx)
	return s, nil
}

// spawn starts the process on a thread that stays until the process has ended:
// Pdeathsig strikes when the thread dies, not the process.
func (s *session) spawn(files []*os.File) error {
	attr := &os.ProcAttr{Dir: "/", Files: files, Sys: s.way.attributes()}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		proc, err := os.StartProcess("/proc/self/exe", []string{"skeletonkey", innerArg}, attr)
		s.proc = proc
		started <- err
		if err == nil {
			state, _ := proc.Wait()
			s.exited <- state
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	if !s.way.pid {
		s.mountNS = openNamespace(s.proc.Pid)
	}
	return nil
}

// attributes are those of the inner process. The capabilities that come with a
// user namespace survive the exec only as ambient ones.
func (w way) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Cloneflags: w.cloneflags()}
	if w.pid {
		// The kernel then kills all others in the namespace. Without one the
		// inner must live to do that, when it sees its link's end.
		attr.Pdeathsig = syscall.SIGKILL
	}
	if w.user {
		uid, gid := os.Geteuid(), os.Getegid()
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	}
	return attr
}

// listen reads what the inner sends until there is no more. It ends with the
// inner, or when the link is closed.
func (s *session) listen(ctx context.Context) {
	defer close(s.reports)
	buf := make([]byte, maxMessage)
	for {
		kind, body, err := s.link.get(buf)
		if err != nil {
			return
		}
		switch kind {
		case msgLog:
			relog(ctx, s.plan.Log, body)
		case msgReport:
			var rep report
			if json.Unmarshal(body, &rep) == nil {
				s.reports <- rep
				return
			}
		}
	}
}

// wait passes signals on until the inner has ended, and returns its report.
// Nothing of the session is left afterwards.
func (s *session) wait(ctx context.Context, signals <-chan os.Signal) (report, error) {
	defer s.link.f.Close()
	defer s.mountNS.Close() // also of nil
	var state *os.ProcessState
	for running := true; running; {
		select {
		case <-ctx.Done():
			state, running = s.kill(), false
		case sig, ok := <-signals:
			if !ok {
				signals = nil
			} else if n, ok := sig.(syscall.Signal); ok {
				// Refused only when the inner is ending; then none cares.
				_ = s.link.put(msgSignal, []byte{byte(n)}, time.Second)
			}
		case state = <-s.exited:
			running = false
		}
	}
	// Nobody writes any more, unless a descriptor went astray.
	_ = s.link.f.SetReadDeadline(time.Now().Add(time.Second))
	rep, ok := <-s.reports
	if ok {
		return rep, nil
	}
	if s.mountNS != nil {
		killNamespace(s.mountNS)
	}
	if err := context.Cause(ctx); err != nil {
		return rep, err
	}
	return rep, fmt.Errorf("run in a private namespace: %w (%v): %s", ErrDied, state,
		"the command was killed with it, and what it wrote last may be lost")
}

// kill ends the inner, and all that it started, at once.
func (s *session) kill() *os.ProcessState {
	if s.way.pid {
		_ = s.proc.Kill()
		return <-s.exited
	}
	s.link.f.Close()
	select {
	case state := <-s.exited:
		return state
	case <-time.After(10 * time.Second):
		_ = s.proc.Kill()
		return <-s.exited
	}
}
