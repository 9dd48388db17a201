package private

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptors that the inner process inherits beside 0, 1 and 2.
const (
	innerLinkFD = 3
	innerSpecFD = 4
)

// errAborted is why the context given to a ServeFunc ends early.
var errAborted = errors.New("a signal ended the preparations")

// inner is the process that has the namespaces.
type inner struct {
	spec    innerSpec
	link    *link
	log     *slog.Logger
	relay   *relay
	ctx     context.Context // given to servers; ends with the process or the preparations
	servers []served        // in the order of mounting
	started bool            // the command's program has been started
	status  syscall.WaitStatus
	empty   chan struct{} // closed when no child is left; nil before the first
}

// served is a mounted file system.
type served struct {
	where  string
	server Server
}

// newInner takes over what the outer handed down.
func newInner() (*inner, error) {
	l, err := openLink(innerLinkFD)
	if err != nil {
		return nil, err
	}
	in := &inner{link: l}
	unix.CloseOnExec(innerSpecFD)
	if err := unpack(innerSpecFD, &in.spec); err != nil {
		return nil, err
	}
	in.log = slog.New(linkHandler(l, in.spec.LogLevel))
	return in, nil
}

// main does the whole work and reports it.
func (in *inner) main(serve ServeFunc) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	in.ctx = ctx
	in.relay = newRelay(func() { cancel(errAborted) },
		func(pid int, s syscall.Signal) { _ = unix.Kill(pid, s) },
		func() error { return unix.Kill(os.Getpid(), marker) })
	in.relay.catch()
	go in.listen()

	rep := in.work(serve)
	body, err := json.Marshal(rep)
	for len(body) >= maxMessage && len(rep.Failures) > 1 { // the first ones tell enough
		rep.Failures = rep.Failures[:len(rep.Failures)/2]
		body, err = json.Marshal(rep)
	}
	if err == nil {
		// The outer may be stopped; if it is dead, listen ends this process.
		err = in.link.put(msgReport, body, 24*time.Hour)
	}
	if err != nil {
		return 1
	}
	return 0
}

// listen takes signals from the outer for as long as the process lives, and
// when the outer is gone ends it with all that it started.
func (in *inner) listen() {
	buf := make([]byte, maxMessage)
	for {
		kind, body, err := in.link.get(buf)
		if err != nil {
			break
		}
		if kind == msgSignal && len(body) == 1 {
			in.relay.forward(syscall.Signal(body[0]))
		}
	}
	if !in.spec.PID {
		for end := time.Now().Add(5 * time.Second); killDescendants() && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
	}
	os.Exit(1) // PID 1 takes its namespace with it
}

// work makes the namespace, serves, runs the command and takes all down again.
func (in *inner) work(serve ServeFunc) report {
	var failures []*failure
	if f := in.prepare(serve); f != nil {
		failures = append(failures, f)
	} else if !in.spec.Probe {
		if f := in.runApp(); f != nil {
			failures = append(failures, f)
		}
	}
	rep := report{Started: in.started, ExitCode: in.status.ExitStatus()}
	if in.status.Signaled() {
		rep.ExitCode, rep.Signal = 0, in.status.Signal()
	}
	if s := in.relay.abortedBy(); s != 0 {
		rep, failures = report{Signal: s}, nil // what failed, failed because of that
	}
	rep.Failures = append(failures, in.end()...)
	return rep
}

// prepare makes the namespace and serves every mount.
func (in *inner) prepare(serve ServeFunc) *failure {
	r, f := in.room()
	if f != nil {
		return f
	}
	in.log.Info("private namespace", "way", in.spec.Way, "root", r.String())
	if !in.spec.PID {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return failed(kindOther, "become the reaper of orphans", err)
		}
		in.log.Info("no PID namespace: processes that the command leaves are found by parentage")
	}
	if in.spec.Probe || len(in.spec.Mounts) > 0 && !in.spec.None {
		if f := tryFuse(); f != nil {
			return f
		}
	}
	for _, m := range in.spec.Mounts {
		if f := r.makePoint(string(m.Where)); f != nil {
			return f
		}
		if f := in.serve(serve, m); f != nil {
			return f
		}
	}
	return r.seal()
}

// room makes the place for mounts.
func (in *inner) room() (*room, *failure) {
	if in.spec.None {
		return &room{inPlace: true, log: in.log}, nil
	}
	return enter(in.spec.PID, in.log)
}

// serve mounts one file system.
func (in *inner) serve(serve ServeFunc, m mountSpec) *failure {
	where := string(m.Where)
	var server Server
	err := in.guard(func() (err error) {
		server, err = serve(in.ctx, in.log, Mount{Where: where, ReadOnly: m.ReadOnly, Config: m.Config})
		return err
	})
	if err != nil {
		return mountFailure(kindServe, where, err)
	}
	in.servers = append(in.servers, served{where, server})
	if m.ReadOnly && !in.spec.None {
		const flags = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
		if err := unix.Mount("", where, "", flags, ""); err != nil {
			return failed(kindOther, "make "+where+" read-only", err)
		}
	}
	return nil
}

// end kills what is left of the command and closes the file systems, the last
// one first.
func (in *inner) end() []*failure {
	ctx, cancel := context.WithTimeout(context.Background(), in.spec.CloseTimeout)
	defer cancel()
	in.killRest(ctx)
	var failures []*failure
	for i := len(in.servers) - 1; i >= 0; i-- {
		s := in.servers[i]
		if err := in.closeWithin(ctx, s.server); err != nil {
			failures = append(failures, mountFailure(kindClose, s.where, err))
		}
	}
	return failures
}

// closeWithin closes a server, but waits little longer than ctx for one that
// does not mind it: the process ends anyway.
func (in *inner) closeWithin(ctx context.Context, s Server) error {
	done := make(chan error, 1)
	go func() { done <- in.guard(func() error { return s.Close(ctx) }) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(2 * time.Second):
		return fmt.Errorf("not finished in time, data may not have been written back: %w", ctx.Err())
	}
}

// guard turns a panic of f into an error.
func (in *inner) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			in.log.Error("panic", "value", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}
