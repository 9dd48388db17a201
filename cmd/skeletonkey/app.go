package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"skeletonkey/chirpd/wire"
	"skeletonkey/generator/job"
)

// app is one run of the program: its streams and what the flags of all commands
// say.
type app struct {
	in       *os.File
	out, err *os.File
	stop     context.CancelFunc // gives SIGINT, SIGTERM and SIGHUP back to the commands that pass them on

	verbose, quiet bool
	logLevel       string
	logFile        string
	logFormat      string
	log            *slog.Logger
	closeLog       func() error
}

const longHelp = `SkeletonKey lets a job run on a cluster against the data where it lies: without
staging, without an administrator, with nothing but a shell and a network.

See it work, on this machine, in a minute:
  skeletonkey demo

Do it:
  skeletonkey serve --root /data --listen :9094 --dist :9095
  skeletonkey generate -c job.ini -o job.sh
  sh job.sh                                  # here, or on any node

Every flag that is given once may be set in the environment too: --log-level is
SKELETONKEY_LOG_LEVEL. A URL of a file is chirp://HOST:PORT/PATH or
/chirp/HOST:PORT/PATH; the port is 9094 unless given.`

// execute runs the command line and returns the exit code.
func (a *app) execute(ctx context.Context, args []string) int {
	root := a.command()
	root.SetArgs(args)
	err := checkCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if a.closeLog != nil {
		_ = a.closeLog()
	}
	return a.exitCode(stoppedBySignal(ctx, err))
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use: "skeletonkey", Short: "Run jobs against remote data and software", Long: longHelp,
		SilenceErrors: true, SilenceUsage: true, Version: about().String(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := cmd.ValidateRequiredFlags(); err != nil {
				return usageOf(cmd, err)
			}
			return a.openLog()
		},
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageOf(cmd, err)
	})
	f := root.PersistentFlags()
	f.BoolVarP(&a.verbose, "verbose", "v", false, "say what is being done (as --log-level debug)")
	f.BoolVarP(&a.quiet, "quiet", "q", false, "say nothing but errors (as --log-level error)")
	f.StringVar(&a.logLevel, "log-level", "info", "debug, info, warn or error")
	f.StringVar(&a.logFile, "log-file", "", "append the log to this `file` instead of standard error")
	f.StringVar(&a.logFormat, "log-format", "text", "text or json")
	root.AddGroup(&cobra.Group{ID: "job", Title: "Jobs and servers:"}, &cobra.Group{ID: "file", Title: "Files on a server:"},
		&cobra.Group{ID: "right", Title: "Rights:"}, &cobra.Group{ID: "software", Title: "Software:"})
	for group, commands := range map[string][]*cobra.Command{
		"job":      {a.serveCommand(), a.mountCommand(), a.umountCommand(), a.execCommand(), a.generateCommand(), a.runCommand(), a.demoCommand()},
		"file":     a.fileCommands(),
		"right":    {a.aclCommand(), a.ticketCommand()},
		"software": a.softwareCommands(),
		"":         {a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	strictArgs(root)
	return root
}

// fromEnvironment sets each flag that the command line did not from its variable,
// SKELETONKEY_FLAG_NAME.
func fromEnvironment(flags *pflag.FlagSet) error {
	var failed error
	flags.VisitAll(func(f *pflag.Flag) {
		name := "SKELETONKEY_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || f.Name == "help" || strings.HasSuffix(f.Value.Type(), "Array") {
			return // what may be repeated has no variable: a job's SKELETONKEY_SERVER is not a flag
		}
		if err := flags.Set(f.Name, value); err != nil {
			failed = errors.Join(failed, usageError{fmt.Errorf("%s=%q in the environment: %w", name, value, err)})
		}
	})
	return failed
}

func (a *app) openLog() error {
	level := new(slog.Level)
	if err := level.UnmarshalText([]byte(a.logLevel)); err != nil {
		return usageError{fmt.Errorf("--log-level %q is not debug, info, warn or error", a.logLevel)}
	}
	switch {
	case a.verbose:
		*level = slog.LevelDebug
	case a.quiet:
		*level = slog.LevelError
	}
	out := a.err
	if a.logFile != "" {
		f, err := os.OpenFile(a.logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		out, a.closeLog = f, f.Close
	}
	options := &slog.HandlerOptions{Level: level}
	switch a.logFormat {
	case "json":
		a.log = slog.New(slog.NewJSONHandler(out, options))
	case "text":
		a.log = slog.New(slog.NewTextHandler(out, options))
	default:
		return usageError{fmt.Errorf("--log-format %q is not text or json", a.logFormat)}
	}
	return nil
}

// withoutSignals is the command's context when its signals are somebody else's.
func withoutSignals(cmd *cobra.Command) context.Context { return context.WithoutCancel(cmd.Context()) }

// terminal reports whether f is one, so that a person looks at it.
func terminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// usageError is a wrong command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// exitError is a failure with an exit code of its own. A nil error has been told
// already.
type exitError struct {
	code int
	err  error
}

func (e exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e exitError) Unwrap() error { return e.err }

// exitCode tells the person what went wrong, and the caller by the codes of
// package job.
func (a *app) exitCode(err error) int {
	var coded exitError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		if coded.err != nil {
			a.complain(coded.err)
		}
		return coded.code
	case errors.As(err, &usage):
		a.complain(err)
		return job.ExitUsage
	}
	a.complain(err)
	if errors.Is(err, wire.NotAuthorized) {
		a.hint("`skeletonkey whoami SERVER` tells whom the server takes you for, `skeletonkey acl get URL` who may do what")
	}
	return failureCode(err)
}

// hint tells a person the way out; a script has no use for it.
func (a *app) hint(text string) {
	if terminal(a.err) && !a.quiet {
		_, _ = fmt.Fprintln(a.err, "skeletonkey: "+text)
	}
}

// complain prints an error, which may be several, one a line.
func (a *app) complain(err error) {
	for line := range strings.Lines(err.Error()) {
		_, _ = fmt.Fprintf(a.err, "skeletonkey: %s\n", a.printable(a.err, strings.TrimSuffix(line, "\n")))
	}
}

// printable is text as it may be shown on f: names of a server must not steer a
// terminal. What is not a terminal gets the text as it is.
func (a *app) printable(f *os.File, text string) string {
	if !terminal(f) {
		return text
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
}

// failureCode tells by kind what went wrong. That a file of this machine cannot be
// used is not a matter of the network, although an errno may look like it.
func failureCode(err error) int {
	var dns *net.DNSError
	var op *net.OpError
	var web *url.Error
	if errors.As(err, &dns) || errors.As(err, &web) && web.Op != "parse" || errors.As(err, &op) && op.Op != "listen" {
		return job.ExitUnreachable
	}
	switch wire.CodeFor(err) {
	case wire.TimedOut, wire.Disconnected, wire.Offline, wire.GrpUnreachable:
		return job.ExitUnreachable
	case wire.NotAuthenticated:
		return job.ExitTicket
	}
	return 1
}
