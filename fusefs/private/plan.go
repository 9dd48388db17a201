package private

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Home is the directory under which a missing mount point is always made, also
// when the machine has such a directory of its own.
const Home = "/chirp"

// RepositoryHome is such a directory too: a machine that has CVMFS may lack the
// repository that is mounted there.
const RepositoryHome = "/cvmfs"

// DefaultCloseTimeout is how long file systems may take to write back what the
// command left, unless the Plan says otherwise.
const DefaultCloseTimeout = 2 * time.Minute

// Plan says what Run has to do.
type Plan struct {
	// Argv is the command and its arguments; at least one element.
	Argv []string
	// Path is the program. When empty it is Argv[0], looked up in the PATH of
	// Env if it has no slash, inside the namespace: it may lie on a Mount.
	Path string
	// Env is the command's whole environment; nil means os.Environ().
	Env []string
	// Dir is the command's working directory, absolute; it may lie on a
	// Mount. Empty means the caller's own.
	Dir string
	// Mounts are made in this order. A place may lie inside an earlier one
	// (the directory must exist there) but not above it.
	Mounts []Mount
	// Stdin, Stdout and Stderr are handed to the command as they are; nil
	// means /dev/null. The caller keeps them.
	Stdin, Stdout, Stderr *os.File
	// PIDNamespace says whether the command gets a PID namespace.
	PIDNamespace PIDMode
	// NoNamespace runs the command without any namespace, for machines that have
	// none: everybody sees the mounts, whose places must exist, and the ServeFunc
	// mounts with fusermount3. What is said of a missing PID namespace holds, and
	// whoever kills the serving process has to unmount.
	NoNamespace bool
	// CloseTimeout bounds what comes after the command's end: the death of
	// what it left and all Server.Close together. 0 is DefaultCloseTimeout.
	CloseTimeout time.Duration
	// Log gets our messages and those of the serving process, among them the
	// way that was taken; nil discards them.
	Log *slog.Logger
}

// Mount is a file system that the command shall see.
type Mount struct {
	// Where is its place, an absolute clean path. A directory there is
	// covered; a missing one is made if its first component is missing too,
	// or is Home.
	Where string
	// ReadOnly makes the kernel refuse every change, whatever the server does.
	ReadOnly bool
	// Config is for the ServeFunc; it may hold secrets.
	Config json.RawMessage
}

// PIDMode says whether the command gets a PID namespace.
type PIDMode int

const (
	// PIDAuto makes a PID namespace where possible, and says in the log where
	// it is not.
	PIDAuto PIDMode = iota
	// PIDNever makes none: for processes that must see those outside by
	// number, as MPI ranks on one node.
	PIDNever
)

// Result tells how the command ended.
type Result struct {
	// Started says whether the command's program was started at all.
	Started bool
	// ExitCode is the command's exit code when Signal is 0.
	ExitCode int
	// Signal killed the command; or it ended the preparations, if Started is
	// false. 0 when there was none.
	Signal syscall.Signal
	// Way names how the namespace was had, for people.
	Way string
}

// Signals returns those that Run should be given by signal.Notify: HUP, INT,
// QUIT, TERM, USR1, USR2, CONT and WINCH, less those that the caller of this
// program had set to be ignored (nohup): they stay ignored by the command. To
// be called before any of them is caught.
func Signals() []os.Signal {
	var list []os.Signal
	for _, s := range []syscall.Signal{
		unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGCONT, unix.SIGWINCH,
	} {
		if !signal.Ignored(s) {
			list = append(list, s)
		}
	}
	return list
}

// completed returns the plan with its defaults filled in, or what is wrong.
func (p Plan) completed() (Plan, error) {
	if len(p.Argv) == 0 {
		return p, errors.New("run in a private namespace: no command given")
	}
	if p.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return p, fmt.Errorf("run in a private namespace: the working directory is gone: %w", err)
		}
		p.Dir = dir
	}
	if p.Env == nil {
		p.Env = os.Environ()
	}
	if p.CloseTimeout <= 0 {
		p.CloseTimeout = DefaultCloseTimeout
	}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	return p, p.check()
}

// check refuses strings that the kernel cannot take and places that make no
// sense.
func (p Plan) check() error {
	for _, s := range append(append([]string{p.Path, p.Dir}, p.Argv...), p.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("run in a private namespace: a zero byte in %q", s)
		}
	}
	if !filepath.IsAbs(p.Dir) {
		return fmt.Errorf("run in a private namespace: working directory %q is not absolute", p.Dir)
	}
	for i, m := range p.Mounts {
		if !filepath.IsAbs(m.Where) || filepath.Clean(m.Where) != m.Where || m.Where == "/" || strings.IndexByte(m.Where, 0) >= 0 {
			return fmt.Errorf("mount at %q: give an absolute, clean path other than /", m.Where)
		}
		for _, earlier := range p.Mounts[:i] {
			if earlier.Where == m.Where || strings.HasPrefix(earlier.Where, m.Where+"/") {
				return fmt.Errorf("mount at %s: it would hide %s, which is mounted before", m.Where, earlier.Where)
			}
		}
	}
	return nil
}
