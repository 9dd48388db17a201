package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// chirpServerName is the name under which this program takes chirp_server's options.
const chirpServerName = "chirp_server"

// chirpOptions are chirp_server's: those of serve, and how the process runs.
type chirpOptions struct {
	serve serveOptions

	root, advertise, iface string
	port                   int
	methods, debug         []string
	debugFile, pidFile     string
	debugMax               size
	background, orphans    bool
	noCore, help, version  bool
	readyFD                int
}

// without are the options that have no meaning here, and why.
var without = map[string]string{
	"transient":       "uploads lie beside the file that they become",
	"parent-check":    "--parent-death notices at once",
	"jobs":            "this server runs no jobs",
	"job-concurrency": "this server runs no jobs",
	"job-time-limit":  "this server runs no jobs",
}

// flags are the options of the manual page of cctools 9.9, and those that the program
// tells of beyond it.
func (o *chirpOptions) flags() *pflag.FlagSet {
	f := pflag.NewFlagSet(chirpServerName, pflag.ContinueOnError)
	f.SortFlags = false
	f.Usage = func() {}
	s := &o.serve
	f.StringVarP(&o.root, "root", "r", ".", "`URL` of the directory to export: a path, or file://PATH")
	f.StringVarP(&s.defaultACL, "default-acl", "A", "", "`file` with the ACL of directories that have none")
	f.BoolVar(&s.inherit, "inherit-default-acl", false, "directories without an ACL inherit from those above")
	f.StringArrayVarP(&o.methods, "auth", "a", nil, "`method` to authenticate by; may be repeated (default all)")
	f.BoolVarP(&o.background, "background", "b", false, "run as a daemon")
	f.StringVarP(&o.pidFile, "pid-file", "B", "", "write the process's number to this `file`")
	f.BoolVarP(&o.noCore, "no-core-dump", "C", false, "leave no core dump, whatever happens")
	f.StringVarP(&s.challengeDir, "challenge-dir", "c", auth.DefaultChallengeDir, "`directory` of unix challenges")
	f.StringArrayVarP(&o.debug, "debug", "d", nil, "log what concerns this `subsystem`; any gives the whole log")
	f.BoolVarP(&o.orphans, "parent-death", "E", false, "end when the parent process does")
	f.VarP(span{new(time.Duration)}, "parent-check", "e", "without meaning here")
	f.VarP(&s.freeSpace, "free-space", "F", "`size` to leave free on the disk")
	f.StringVarP(&s.groupURL, "group-url", "G", "", "base `URL` of groups")
	f.BoolVarP(&o.help, "help", "h", false, "show this")
	f.StringVarP(&s.user, "user", "i", "", "become this `user` when started as root")
	f.StringVarP(&o.iface, "interface", "I", "", "listen only on this `address`")
	f.IntVarP(&s.maxClients, "max-clients", "M", 0, "`number` of clients at a time (default unlimited)")
	f.StringVarP(&s.catalog.Name, "catalog-name", "n", "", "`name` to tell the catalog")
	f.StringVarP(&o.debugFile, "debug-file", "o", ":stderr", "log to this `file`, to :stderr or :stdout")
	f.VarP(&o.debugMax, "debug-rotate-max", "O", "begin the log anew at this `size`")
	f.StringVarP(&s.superuser, "superuser", "P", "", "`subject` that may do everything")
	f.IntVarP(&o.port, "port", "p", wire.DefaultPort, "`port` to listen on; 0: any")
	f.StringVar(&s.catalog.Project, "project-name", "", "`name` of the project to tell the catalog")
	f.VarP(&s.rootQuota, "root-quota", "Q", "`size` that the export may hold")
	f.BoolVarP(&s.readOnly, "read-only", "R", false, "refuse every change")
	f.VarP(span{&s.stalled}, "stalled", "s", "give up stalled transfers after this `time` (default 3600s)")
	f.VarP(span{&s.groupCache}, "group-cache-exp", "T", "`time` to believe a group's list (default 900s)")
	f.VarP(span{&s.idle}, "idle-clients", "t", "disconnect idle clients after this `time` (default 60s)")
	f.VarP(span{&s.catalog.Interval}, "catalog-update", "U", "`time` between updates of the catalog (default 5m)")
	f.StringVarP(&o.advertise, "advertise", "u", "", "`hosts` of catalogs to tell of this server (default none)")
	f.StringVar(&o.advertise, "advertize", "", "the same")
	f.BoolVarP(&o.version, "version", "v", false, "show the version")
	f.StringVarP(&s.passwd, "passwd", "W", "", "`file` of users for unix authentication")
	f.StringVarP(&s.catalog.Owner, "owner", "w", "", "`name` of the server's owner")
	f.StringP("transient", "y", "", "without meaning here")
	f.StringVarP(&s.portFile, "port-file", "Z", "", "choose a port and write it to this `file`")
	f.VarP(span{&s.unixWait}, "unix-timeout", "z", "`time` to wait for a unix challenge's answer (default 5s)")
	f.Bool("jobs", false, "without meaning here")
	f.Int("job-concurrency", 1, "without meaning here")
	f.Var(span{new(time.Duration)}, "job-time-limit", "without meaning here")
	f.StringVar(&s.state, "state", "", "`directory` of the server's own state, its tickets")
	f.IntVar(&o.readyFD, "ready-fd", -1, "")
	_ = f.MarkHidden("ready-fd") // fails only for a flag that does not exist
	f.SetNormalizeFunc(unabbreviated(f))
	return f
}

// unabbreviated lets an option be written by the beginning of its name.
func unabbreviated(f *pflag.FlagSet) func(*pflag.FlagSet, string) pflag.NormalizedName {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if slices.Contains(names, name) {
			return pflag.NormalizedName(name)
		}
		match := ""
		for _, full := range names {
			if strings.HasPrefix(full, name) {
				if match != "" {
					return pflag.NormalizedName(name) // one of several: unknown
				}
				match = full
			}
		}
		if match == "" {
			match = name
		}
		return pflag.NormalizedName(match)
	}
}

// chirpServer runs the program under the name chirp_server and returns the exit code.
func (a *app) chirpServer(ctx context.Context, argv []string) int {
	return a.exitCode(a.chirpServe(ctx, argv))
}

func (a *app) chirpServe(ctx context.Context, argv []string) error {
	o := chirpOptions{serve: serveOptions{unixWait: unixWait, idle: time.Minute}}
	flags := o.flags()
	if err := flags.Parse(argv[1:]); err != nil {
		return usageError{fmt.Errorf("%w; see %s --help", err, chirpServerName)}
	}
	switch {
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("%q is no option; see %s --help", flags.Arg(0), chirpServerName)}
	case o.help:
		_, err := fmt.Fprintf(a.out, "use: %s [options]\n%s", chirpServerName, flags.FlagUsages())
		return err
	case o.version:
		_, err := fmt.Fprintf(a.out, "%s of skeletonkey %s %s\n", chirpServerName, version, revision())
		return err
	}
	if err := o.finish(os.Getenv); err != nil {
		return err
	}
	if o.background {
		return a.inBackground(ctx, "server", append(append([]string{chirpServerName}, argv[1:]...), "--background=false", "--ready-fd=3"))
	}
	log, err := o.openLog(a)
	if err != nil {
		return err
	}
	defer log.Close()
	flags.Visit(func(f *pflag.Flag) {
		if why, ok := without[f.Name]; ok {
			a.log.Warn("an option has no meaning here", "option", "--"+f.Name, "because", why)
		}
	})
	return a.runChirpServer(ctx, &o)
}

// finish works out what depends on several options and on the environment.
func (o *chirpOptions) finish(env func(string) string) error {
	s := &o.serve
	scheme, path, ok := strings.Cut(o.root, "://")
	switch {
	case !ok:
		s.root = o.root
	case scheme == "file" || scheme == "local":
		s.root = path
	default:
		return usageError{fmt.Errorf("--root: %s:// cannot be exported, only a directory", scheme)}
	}
	s.auth = "unix,ticket,hostname,address"
	if len(o.methods) > 0 {
		s.auth = strings.Join(slices.DeleteFunc(o.methods, func(m string) bool { return m == "globus" || m == "kerberos" }), ",")
	}
	if s.auth == "" {
		return usageError{errors.New("--auth: neither globus nor kerberos is here; use unix, ticket, hostname or address")}
	}
	hosts := o.advertise
	if hosts == "" {
		hosts = env("CATALOG_HOST")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if host = strings.TrimSpace(host); host != "" && host != "-" {
			s.catalog.Hosts = append(s.catalog.Hosts, host)
		}
	}
	s.catalog.TCP = env("CATALOG_UPDATE_PROTOCOL") == "tcp"
	port := strconv.Itoa(o.port)
	if s.portFile != "" || o.port == 0 {
		port = "0"
		if low, high := env("TCP_LOW_PORT"), env("TCP_HIGH_PORT"); low != "" || high != "" {
			port = orDefault(low, "1024") + "-" + orDefault(high, "32767")
		}
	}
	s.listen = net.JoinHostPort(o.iface, port)
	return nil
}

func orDefault(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// quietFlags are the debug flags that ask for no more than is logged anyway.
var quietFlags = []string{"clear", "fatal", "error", "notice"}

// openLog makes the log that the options ask for. The caller closes it.
func (o *chirpOptions) openLog(a *app) (io.Closer, error) {
	level := slog.LevelWarn
	if slices.ContainsFunc(o.debug, func(flag string) bool { return !slices.Contains(quietFlags, flag) }) {
		level = slog.LevelDebug
	}
	out, closer := io.Writer(a.err), io.Closer(io.NopCloser(nil))
	switch o.debugFile {
	case ":stderr":
	case ":stdout":
		out = a.out
	default:
		file, err := openRotating(o.debugFile, int64(o.debugMax))
		if err != nil {
			return nil, fmt.Errorf("--debug-file: %w", err)
		}
		out, closer = file, file
	}
	a.log = slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
	return closer, nil
}

// runChirpServer serves until it is told to stop.
func (a *app) runChirpServer(ctx context.Context, o *chirpOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if o.noCore {
		if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
			return fmt.Errorf("--no-core-dump: %w", err)
		}
	}
	if o.orphans {
		done := make(chan struct{})
		go func() {
			defer close(done)
			untilOrphaned(ctx, func() { cancel(errors.New("the parent process has ended")) })
		}()
		defer func() {
			cancel(nil)
			<-done
		}()
	}
	remove, err := writePID(o.pidFile)
	if err != nil {
		return err
	}
	defer remove()
	var failed error
	o.serve.ready = func(net.Addr, net.Addr) {
		if failed = tellReady(o.readyFD); failed != nil {
			cancel(failed)
		}
	}
	return errors.Join(a.serve(ctx, o.serve), failed)
}
