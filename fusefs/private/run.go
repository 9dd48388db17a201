package private

import (
	"context"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
)

// Run starts the plan's command in a private namespace, waits for its end and
// returns how it ended. Values received from signals are passed on to it; the
// caller makes and stops the channel (see Signals), nil means none.
//
// The error, if any, is a failure of ours, and may come together with the
// Result of a command that did end: *Unavailable, *ExecError, *MountError
// (also joined: use errors.As), ErrNoMountPoint, ErrDied, or ctx's cause. When
// ctx ends everything in the namespace is killed at once, and what was not
// written back is lost; to let a command end in peace, send it a signal.
//
// The program must call Main first thing when IsInner reports true.
func Run(ctx context.Context, plan Plan, signals <-chan os.Signal) (Result, error) {
	plan, err := plan.completed()
	if err != nil {
		return Result{}, err
	}
	return runFirst(ctx, plan, signals, false)
}

// Probe tells whether Run can work here: it makes the namespaces and mounts an
// idle FUSE file system in them. It returns nil or what Run would return.
func Probe(ctx context.Context) error {
	plan := Plan{Dir: "/", Log: slog.New(slog.DiscardHandler), CloseTimeout: DefaultCloseTimeout}
	_, err := runFirst(ctx, plan, nil, true)
	return err
}

// runFirst tries one way after the other until one leads into a namespace.
func runFirst(ctx context.Context, plan Plan, signals <-chan os.Signal, probe bool) (Result, error) {
	var refused []*failure
	list := ways(plan.PIDNamespace)
	if plan.NoNamespace {
		list = []way{{none: true}}
	}
	for _, w := range list {
		res, fail, err := w.run(ctx, &plan, signals, probe)
		if fail == nil {
			return res, err
		}
		plan.Log.Warn("private namespace refused", "way", w.String(), "error", fail)
		refused = append(refused, fail)
	}
	return Result{}, noNamespace(refused)
}

// way is a combination of namespaces.
type way struct {
	none bool // no namespace at all
	user bool // a user namespace, for who may not mount
	pid  bool
}

// ways lists what to try, best first.
func ways(mode PIDMode) []way {
	var list []way
	for _, user := range []bool{false, true} {
		if !user && !mayMount() {
			continue
		}
		if mode == PIDAuto {
			list = append(list, way{user: user, pid: true})
		}
		list = append(list, way{user: user})
	}
	return list
}

// String names the way for people.
func (w way) String() string {
	switch {
	case w.none:
		return "no namespace"
	case w.user && w.pid:
		return "user, mount and PID namespace"
	case w.user:
		return "user and mount namespace"
	case w.pid:
		return "mount and PID namespace, as root"
	}
	return "mount namespace, as root"
}

// cloneflags are those of the inner process.
func (w way) cloneflags() uintptr {
	if w.none {
		return 0
	}
	flags := uintptr(unix.CLONE_NEWNS)
	if w.user {
		flags |= unix.CLONE_NEWUSER
	}
	if w.pid {
		flags |= unix.CLONE_NEWPID
	}
	return flags
}
