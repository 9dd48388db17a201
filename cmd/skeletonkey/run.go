package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/auth"
	"skeletonkey/generator/job"
	"skeletonkey/generator/run"
)

// partLimit bounds what a job script hands over on one descriptor, in bytes.
const partLimit = 4 << 20

// runFlags are the flags by which a job script hands itself over.
type runFlags struct {
	jobFD, ticketFD, proxyFD int
	debug, preserve          bool
}

func (a *app) runCommand() *cobra.Command {
	var r runFlags
	cmd := &cobra.Command{
		Use: "run --job-fd N [--ticket-fd N] [--user-proxy-fd N] -- [ARGUMENT...]", Short: "Run a job; job scripts call this",
		Long: `Run is what a job script calls when it has brought this program to the node. It
takes the job, its ticket and its X.509 proxy from descriptors, makes a scratch
directory, fetches and unpacks the application, mounts the data in a private
namespace, and runs the application there. Signals are passed on, and the
application's exit code is this command's; the README lists our own.`,
		Example: "  sh job.sh --debug        # the job script's own flags: --debug, --preserve-dir",
	}
	f := cmd.Flags()
	f.IntVar(&r.jobFD, "job-fd", -1, "descriptor to read the job from (required)")
	f.IntVar(&r.ticketFD, "ticket-fd", -1, "descriptor to read the ticket from")
	f.IntVar(&r.proxyFD, "user-proxy-fd", -1, "descriptor to read the X.509 proxy file from")
	f.BoolVarP(&r.debug, "debug", "d", false, "say what is being done")
	f.BoolVar(&r.preserve, "preserve-dir", false, "keep the scratch directory, and say where it is")
	_ = cmd.MarkFlagRequired("job-fd") // fails only for a flag that does not exist
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.run(cmd, r, args) }
	return cmd
}

func (a *app) run(cmd *cobra.Command, r runFlags, args []string) error {
	o, err := r.options()
	if err != nil {
		return usageError{err}
	}
	o.Args, o.PreserveDir = args, r.preserve
	o.Log = a.quietLog(r.debug)
	o.Stdin, o.Stdout, o.Stderr = a.in, a.out, a.err
	signals, release, err := a.takeSignals(cmd.Context())
	if err != nil {
		return err
	}
	defer release()
	o.Signals = signals
	code, err := run.Run(withoutSignals(cmd), o)
	return exitWith(code, err)
}

// exitWith makes the error of a command whose exit code is another program's.
func exitWith(code int, err error) error {
	if code == 0 && err == nil {
		return nil
	}
	if code == 0 { // no success unless certain
		code = job.ExitInternal
	}
	return exitError{code, err}
}

// options reads the parts of the job. The descriptors are closed afterwards, so
// that nothing that the job starts can have them.
func (r runFlags) options() (o run.Options, err error) {
	text, err := readPart(r.jobFD, "job")
	if err != nil {
		return o, err
	}
	if o.Job, err = job.Decode(text); err != nil {
		return o, fmt.Errorf("the job: %w", err)
	}
	if r.ticketFD >= 0 {
		text, err := readPart(r.ticketFD, "ticket")
		if err != nil {
			return o, err
		}
		if o.Ticket, err = auth.ParseTicket(text); err != nil {
			return o, err
		}
	}
	if r.proxyFD >= 0 {
		o.UserProxy, err = readPart(r.proxyFD, "X.509 proxy")
	}
	return o, err
}

func readPart(fd int, what string) ([]byte, error) {
	if fd < 3 {
		return nil, fmt.Errorf("descriptor %d cannot hold the %s; this command is for job scripts", fd, what)
	}
	f := os.NewFile(uintptr(fd), what)
	if f == nil {
		return nil, fmt.Errorf("descriptor %d with the %s is not open", fd, what)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, partLimit+1))
	if err == nil && len(text) > partLimit {
		err = errors.New("it is too long")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the %s: %w", what, err)
	}
	return text, nil
}

// quietLog is the log of commands whose standard error is an application's: it
// has warnings only, unless asked.
func (a *app) quietLog(debug bool) *slog.Logger {
	switch {
	case debug:
		return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelDebug}))
	case a.verbose || a.logFile != "":
		return a.log
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
}
