package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/generator/run"
)

// execFlags is what the flags of exec say.
type execFlags struct {
	connection
	servers, mounts []string
	readOnly, noPID bool
}

func (a *app) execCommand() *cobra.Command {
	var e execFlags
	cmd := &cobra.Command{
		Use: "exec [flags] -- COMMAND [ARGUMENT...]", Short: "Run a command with servers mounted, without root", Args: cobra.MinimumNArgs(1),
		Long: `Exec runs a command in a private mount namespace in which each server named by
--server is at /chirp/HOST:PORT, and each --mount at its own place. Nobody else
sees the mounts, and they go when the command ends, whatever ends it. It needs
/dev/fuse and user namespaces, or root. Setuid programs have no effect inside.

Signals are passed on, and the command's exit code is this command's.`,
		Example: `  skeletonkey exec --server data:9094 -- ls /chirp/data:9094/records
  skeletonkey exec --ticket job.ticket --mount chirp://data:9094/records=/chirp/records -- python3 analyse.py`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.exec(cmd, e, args) },
	}
	e.addFlags(cmd, client.DefaultTimeout)
	f := cmd.Flags()
	f.SetInterspersed(false)
	f.StringArrayVar(&e.servers, "server", nil, "`HOST:PORT` of a server to show at /chirp/HOST:PORT; may be repeated")
	f.StringArrayVar(&e.mounts, "mount", nil, "`URL=/WHERE`: a directory of a server and its place; may be repeated")
	f.BoolVar(&e.readOnly, "read-only", false, "refuse every change in all mounts")
	f.BoolVar(&e.noPID, "no-pid-namespace", false, "let the command see the processes outside, as MPI ranks must")
	return cmd
}

func (a *app) exec(cmd *cobra.Command, e execFlags, argv []string) error {
	mounts, err := e.execMounts()
	if err != nil {
		return usageError{err}
	}
	o := run.ExecOptions{
		Mounts: mounts, Argv: argv, ChallengeDir: e.challengeDir, NoPIDNamespace: e.noPID,
		ConnectTimeout: min(max(e.timeout, time.Second), run.DefaultConnectTimeout), ServerTimeout: e.timeout,
		Log: a.quietLog(false), Stdin: a.in, Stdout: a.out, Stderr: a.err,
	}
	for _, file := range e.tickets {
		t, err := auth.LoadTicket(file)
		if err != nil {
			return err
		}
		o.Tickets = append(o.Tickets, t)
	}
	o.Auth = e.execAuth(mounts, o.Tickets)
	signals, release, err := a.takeSignals(cmd.Context())
	if err != nil {
		return err
	}
	defer release()
	o.Signals = signals
	return exitWith(run.Exec(withoutSignals(cmd), o))
}

// execAuth is the default of --auth where each server has a ticket: it, and nothing
// that lends more. Where only some have one, each has its own default.
func (e execFlags) execAuth(mounts []run.ExecMount, tickets []*auth.Ticket) string {
	names := e.auth
	for _, m := range mounts {
		own, err := namesFor(e.auth, tickets, m.Server)
		if err != nil {
			return e.auth
		}
		names = own
	}
	return names
}

// execMounts reads --server and --mount.
func (e execFlags) execMounts() ([]run.ExecMount, error) {
	var mounts []run.ExecMount
	for _, s := range e.servers {
		server, path, err := client.ParseURL(s)
		if err != nil {
			return nil, fmt.Errorf("--server: %w", err)
		}
		mounts = append(mounts, run.ExecMount{Server: server, Path: path, ReadOnly: e.readOnly})
	}
	for _, m := range e.mounts {
		url, where, ok := strings.Cut(m, "=/")
		where = filepath.Clean("/" + where)
		if !ok || where == "/" {
			return nil, fmt.Errorf("--mount %q is not URL=/WHERE, as in chirp://data:9094/records=/chirp/records", m)
		}
		server, path, err := client.ParseURL(url)
		if err != nil {
			return nil, fmt.Errorf("--mount: %w", err)
		}
		mounts = append(mounts, run.ExecMount{Server: server, Path: path, Where: where, ReadOnly: e.readOnly})
	}
	if len(mounts) == 0 {
		return nil, errors.New("nothing to mount: give --server HOST:PORT or --mount URL=/WHERE")
	}
	return mounts, nil
}
