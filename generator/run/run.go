package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// runner is one job being run.
type runner struct {
	Options
	env     environment
	gate    *gate
	keeper  *keeper
	scratch *scratch
}

// Signals returns those that Options.Signals should be given by signal.Notify.
func Signals() []os.Signal { return private.Signals() }

// Run runs a job on this node, from the choice of a scratch directory to its
// removal, and returns its exit code: the application's own, or one of those in
// package job. The error is nil if the end was the application's own, and else says
// what happened; its code is that of ExitCode. When ctx ends, everything is killed
// and what was not written back is lost: to end a job in peace, send it a signal.
//
// No program that the job starts gets any descriptor of this process but those in o.
//
// The program must call Hidden first thing in main.
func Run(ctx context.Context, o Options) (exit int, err error) {
	o, err = o.completed()
	if err != nil {
		return job.ExitUsage, &Failure{job.ExitUsage, err}
	}
	if err := checkTicket(o.Job, o.Ticket, time.Now()); err != nil {
		return job.ExitTicket, &Failure{job.ExitTicket, err}
	}
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	r := &runner{Options: o, env: o.Env, gate: newGate(o.Signals, giveUp)}
	defer r.gate.close()
	if r.keeper, err = startKeeper(); err != nil {
		return job.ExitTemporary, fail(job.ExitTemporary, "start a process that cleans up: %w", err)
	}
	defer r.keeper.end()
	if err := r.makeScratch(ctx); err != nil {
		return ExitCode(err), err
	}
	defer r.clean()
	return r.run(ctx)
}

// phase says in the log what is being done.
func (r *runner) phase(name string, args ...any) {
	r.Log.Debug("phase "+name, args...)
}

// checkTicket tells why a ticket cannot open the job's directories.
func checkTicket(j *job.Job, t *auth.Ticket, now time.Time) error {
	switch {
	case len(j.Dirs) == 0:
		return nil
	case t == nil:
		return errors.New("the job's ticket is missing")
	case j.Ticket.Digest != t.Digest():
		return errors.New("the ticket is not the one that the job was made with; generate the job again")
	case t.Server == "" || !t.BoundTo(j.Server):
		return fmt.Errorf("the ticket is for the server %q, the job's data is on %s; generate the job again", t.Server, j.Server)
	case t.Expired(now), now.After(time.Unix(j.Ticket.Expires, 0).Add(auth.Leeway)):
		return fmt.Errorf("the ticket ended at %s; generate the job again", time.Unix(j.Ticket.Expires, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

// makeScratch sweeps up what dead jobs left, and makes the scratch directory.
func (r *runner) makeScratch(ctx context.Context) error {
	r.phase("scratch")
	list := bases(r.env)
	for _, base := range list {
		sweep(ctx, base, r.Log)
	}
	base, err := chooseBase(list, r.Job.Application.Location != "", r.Log)
	if err != nil {
		return failed(ctx, job.ExitNoScratch, err)
	}
	prefix := scratchPrefix
	if r.PreserveDir {
		prefix = preservedPrefix
	}
	r.scratch, err = newScratch(base, prefix, func(dir string) error {
		return r.keeper.charge(duty{Dir: dir, Preserve: r.PreserveDir})
	})
	if err != nil {
		return failed(ctx, job.ExitNoScratch, fmt.Errorf("make a scratch directory: %w", err))
	}
	r.Log.Info("scratch directory", "dir", r.scratch.dir)
	return nil
}

// run does what there is between the making and the removal of the scratch
// directory.
func (r *runner) run(ctx context.Context) (int, error) {
	if err := r.bring(ctx); err != nil {
		return ExitCode(err), err
	}
	proxy, err := r.saveProxy()
	if err != nil {
		return ExitCode(err), err
	}
	signals, ok := r.gate.pass()
	if !ok {
		err := failed(ctx, job.ExitTemporary, context.Cause(ctx))
		return ExitCode(err), err
	}
	return r.start(ctx, proxy, signals)
}

// clean removes the scratch directory. It has the job's result in its hands, and
// does not change it: what cannot be removed is logged, and swept by the next job.
func (r *runner) clean() {
	r.phase("clean", "dir", r.scratch.dir)
	if r.PreserveDir {
		if err := os.Remove(r.scratch.proxy()); err != nil && !errors.Is(err, os.ErrNotExist) {
			r.Log.Warn("the X.509 proxy file stays", "error", err)
		}
		r.Log.Warn("the scratch directory is preserved", "dir", r.scratch.dir)
		r.scratch.lock.Close()
	} else if err := r.scratch.remove(); err != nil {
		r.Log.Warn("the scratch directory cannot be removed", "dir", r.scratch.dir, "error", err)
	}
	if err := r.keeper.charge(duty{}); err != nil {
		r.Log.Debug("the keeper is gone", "error", err)
	}
}
