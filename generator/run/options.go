package run

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/generator/job"
)

const (
	// DefaultConnectTimeout is how long a job waits for its server before it
	// starts, unless Options say otherwise.
	DefaultConnectTimeout = time.Minute
	// DefaultServerTimeout is how long a running job waits for a server that went
	// away, unless Options say otherwise.
	DefaultServerTimeout = 10 * time.Minute
)

// Options says what Run has to do.
type Options struct {
	// Job is what to run; required.
	Job *job.Job
	// Ticket opens the job's directories; nil for a job that has none.
	Ticket *auth.Ticket
	// UserProxy is the content of the X.509 proxy file; nil when there is none.
	UserProxy []byte
	// Args follow the job's own arguments.
	Args []string
	// Env is the environment that the job was started with; nil means os.Environ().
	Env []string
	// PreserveDir keeps the scratch directory, and says in the log where it is.
	PreserveDir bool
	// ConnectTimeout bounds the wait for the server before the application starts,
	// ServerTimeout the wait for one that went away later. 0 means the default.
	ConnectTimeout, ServerTimeout time.Duration
	// Log gets the phases (debug), the ways that were taken (info) and what went
	// wrong without ending the job (warn); nil discards them.
	Log *slog.Logger
	// Stdin, Stdout and Stderr are handed to the application as they are; nil means
	// /dev/null.
	Stdin, Stdout, Stderr *os.File
	// Signals are passed on to the application; before it runs those that ask for
	// an end give up the job. The caller makes and stops the channel, see Signals.
	Signals <-chan os.Signal
}

// completed returns the options with their defaults filled in, or what is wrong.
func (o Options) completed() (Options, error) {
	if o.Job == nil {
		return o, errors.New("no job given")
	}
	if err := o.Job.Validate(); err != nil {
		return o, err
	}
	setDefaults(&o.Env, &o.ConnectTimeout, &o.ServerTimeout, &o.Log)
	return o, nil
}

// setDefaults fills in what Options and ExecOptions have in common.
func setDefaults(env *[]string, connect, server *time.Duration, log **slog.Logger) {
	if *env == nil {
		*env = os.Environ()
	}
	if *connect <= 0 {
		*connect = DefaultConnectTimeout
	}
	if *server <= 0 {
		*server = DefaultServerTimeout
	}
	if *log == nil {
		*log = slog.New(slog.DiscardHandler)
	}
}
