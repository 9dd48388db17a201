package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// ExecMount is a directory of an export that a command is to see.
type ExecMount struct {
	// Server is HOST:PORT.
	Server string
	// Path is the directory of the export, clean and absolute; "" means all of it.
	Path string
	// Where is its place, clean and absolute; "" means /chirp/HOST:PORT followed by
	// Path. There, a ticket that does not open Path itself shows the directories
	// below it that it opens.
	Where string
	// ReadOnly refuses every change.
	ReadOnly bool
}

// ExecOptions says what Exec has to do.
type ExecOptions struct {
	// Mounts are what the command sees.
	Mounts []ExecMount
	// Tickets open servers; each is shown only to the server that it was made for.
	Tickets []*auth.Ticket
	// Auth is a list of methods, "" for the default; see auth.Methods.
	Auth string
	// ChallengeDir is agreed on with the servers for unix authentication, "" for
	// the default.
	ChallengeDir string
	// Argv is the command and its arguments.
	Argv []string
	// Env is the command's environment, to which CHIRP_MOUNT is added, the place of
	// the first server; nil means os.Environ().
	Env []string
	// NoPIDNamespace lets the command see processes outside by their numbers.
	NoPIDNamespace bool
	// ConnectTimeout bounds the wait for a server before the command starts,
	// ServerTimeout the wait for one that went away later. 0 means the default.
	ConnectTimeout, ServerTimeout time.Duration
	// Log, Stdin, Stdout, Stderr and Signals are as in Options.
	Log                   *slog.Logger
	Stdin, Stdout, Stderr *os.File
	Signals               <-chan os.Signal
}

// Exec runs a command in a private namespace with mounts, in the current directory,
// and returns its exit code, with an error as Run does. It leaves nothing behind.
//
// The program must call Hidden first thing in main.
func Exec(ctx context.Context, o ExecOptions) (int, error) {
	o = o.completed()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	gate := newGate(o.Signals, giveUp)
	defer gate.close()
	plan, err := o.plan(ctx)
	if err != nil {
		err = failed(ctx, job.ExitInternal, err)
		return ExitCode(err), err
	}
	signals, ok := gate.pass()
	if !ok {
		err := failed(ctx, job.ExitTemporary, context.Cause(ctx))
		return ExitCode(err), err
	}
	res, err := private.Run(ctx, plan, signals)
	var place *private.PlaceError
	if errors.As(err, &place) && slices.ContainsFunc(o.Mounts, func(m ExecMount) bool { return m.Where == place.Where }) {
		err = &Failure{job.ExitUsage, err} // the caller chose it
	}
	return ended(ctx, res, err)
}

// completed returns the options with their defaults filled in.
func (o ExecOptions) completed() ExecOptions {
	setDefaults(&o.Env, &o.ConnectTimeout, &o.ServerTimeout, &o.Log)
	return o
}

// plan says what is to be run.
func (o *ExecOptions) plan(ctx context.Context) (private.Plan, error) {
	if len(o.Argv) == 0 {
		return private.Plan{}, fail(job.ExitUsage, "no command given")
	}
	plan := private.Plan{
		Argv: o.Argv, Env: o.Env, Stdin: o.Stdin, Stdout: o.Stdout, Stderr: o.Stderr,
		CloseTimeout: o.ServerTimeout + closeMargin, Log: o.Log,
	}
	if o.NoPIDNamespace {
		plan.PIDNamespace = private.PIDNever
	}
	for i, m := range o.Mounts {
		if m.Path == "" {
			m.Path = "/"
		}
		if i == 0 {
			where := m.Where
			if where == "" {
				where = path.Join(private.Home, m.Server, m.Path)
			}
			plan.Env = environment(o.Env).with(map[string]string{"CHIRP_MOUNT": where})
		}
		mounts, err := o.mounts(ctx, m)
		if err != nil {
			return private.Plan{}, err
		}
		plan.Mounts = append(plan.Mounts, mounts...)
	}
	return plan, nil
}

// mounts returns the mount that m asks for, or those of which a ticket lets it
// consist.
func (o *ExecOptions) mounts(ctx context.Context, m ExecMount) ([]private.Mount, error) {
	paths := []string{m.Path}
	if m.Where == "" {
		var err error
		if paths, err = o.opened(ctx, m); err != nil {
			return nil, err
		}
	}
	var list []private.Mount
	for _, p := range paths {
		c := o.config(m.Server, p)
		text, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		where := m.Where
		if where == "" {
			where = path.Join(private.Home, m.Server, p)
		}
		list = append(list, private.Mount{Where: where, ReadOnly: m.ReadOnly, Config: text})
	}
	return list, nil
}

// config returns what is served for a directory of a server.
func (o *ExecOptions) config(server, dir string) MountConfig {
	c := MountConfig{
		Server: server, Path: dir, Ask: []string{dir}, Check: []string{dir}, Auth: o.Auth, ChallengeDir: o.ChallengeDir,
		ConnectTimeout: o.ConnectTimeout, ServerTimeout: o.ServerTimeout,
	}
	for _, t := range o.Tickets {
		if t.BoundTo(server) {
			c.Tickets = append(c.Tickets, string(t.Format()))
		}
	}
	return c
}

// opened returns m.Path, or if that is not open to us the directories below it that
// a ticket opens.
func (o *ExecOptions) opened(ctx context.Context, m ExecMount) ([]string, error) {
	c := o.config(m.Server, m.Path)
	if len(c.Tickets) == 0 {
		return []string{m.Path}, nil
	}
	methods, err := c.methods()
	if err != nil {
		return nil, err
	}
	cl := client.New(m.Server, client.Options{Methods: methods, Timeout: o.ConnectTimeout, Log: o.Log})
	defer cl.Close()
	_, err = cl.Stat(ctx, m.Path)
	if err == nil {
		return []string{m.Path}, nil
	}
	if !errors.Is(err, wire.NotAuthorized) {
		return nil, &Failure{serverCode(err), err}
	}
	var open []job.Dir
	for _, t := range o.Tickets {
		if !t.BoundTo(m.Server) {
			continue
		}
		known, e := cl.TicketGet(ctx, t.Digest())
		for _, r := range known.Rights {
			if e == nil && within(r.Path, m.Path) && strings.Contains(r.Rights, "l") {
				open = append(open, job.Dir{Path: r.Path})
			}
		}
	}
	var paths []string
	for _, d := range topmost(open) {
		paths = append(paths, d.Path)
	}
	if len(paths) == 0 {
		return nil, &Failure{job.ExitTicket, fmt.Errorf("%w; name a directory that is open to you", err)}
	}
	o.Log.Info("the ticket opens only a part", "server", m.Server, "path", m.Path, "directories", paths)
	return paths, nil
}
