package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// closeMargin is how much longer than it waits for a lost server the serving
// process may take to write back what the application left.
const closeMargin = time.Minute

// place is where and how the data is mounted.
type place struct {
	mount string // the root of the export, as the application sees it
	plain bool   // without a namespace, by fusermount3
}

// places lists what to try, best first.
func (r *runner) places() []place {
	return []place{
		{private.Home + "/" + r.Job.Server, false},
		{r.scratch.mount(), false}, // the usual place can be neither found nor made
		{r.scratch.mount(), true},
	}
}

// start mounts the data, runs the application, and takes down again. It goes on to
// the next place only if the data cannot be mounted at this one.
func (r *runner) start(ctx context.Context, proxy string, signals <-chan os.Signal) (int, error) {
	var refused []error
	for i, p := range r.places() {
		if i == 1 && !errors.Is(refused[0], private.ErrNoMountPoint) {
			continue // the same way would fail in the same way
		}
		res, err := r.startAt(ctx, p, proxy, signals)
		code, err := ended(ctx, res, err)
		if err == nil || res.Started || code != job.ExitNoMount {
			return code, err
		}
		r.Log.Info("cannot mount in this way", "at", p.mount, "error", err)
		refused = append(refused, err)
		if err := r.unlink(); err != nil {
			return ExitCode(err), err
		}
	}
	return job.ExitNoMount, fail(job.ExitNoMount, "no way to mount the data here: %w", errors.Join(refused...))
}

// startAt is start for one place.
func (r *runner) startAt(ctx context.Context, p place, proxy string, signals <-chan os.Signal) (private.Result, error) {
	plan, err := r.plan(p, proxy)
	if err != nil {
		return private.Result{}, err
	}
	r.phase("mount", "server", r.Job.Server, "at", p.mount, "namespace", !p.plain)
	res, err := private.Run(ctx, plan, signals)
	if err != nil && p.plain {
		err = errors.Join(err, r.makeSure())
	}
	return res, err
}

// makeSure ends what a serving process that was killed left where there is no
// namespace: processes, and mounts.
func (r *runner) makeSure() error {
	for end := time.Now().Add(closeMargin); killMarked(r.scratch.dir) && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return detachBelow(r.scratch.dir)
}

// plan prepares the scratch directory for a place, and says what is to be run.
func (r *runner) plan(p place, proxy string) (private.Plan, error) {
	if err := r.link(p.mount); err != nil {
		return private.Plan{}, err
	}
	mount := ""
	if len(r.Job.Dirs) > 0 {
		mount = p.mount
	}
	mounts, err := r.mounts(p)
	if err != nil {
		return private.Plan{}, err
	}
	path, argv := r.command()
	return private.Plan{
		Argv: argv, Path: path, Dir: r.scratch.work(),
		Env:    r.env.application(r.Job, r.scratch, mount, proxy),
		Mounts: mounts,
		Stdin:  r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr,
		NoNamespace:  p.plain,
		CloseTimeout: r.ServerTimeout + closeMargin,
		Log:          r.Log,
	}, nil
}

// mounts lists what is mounted: CVMFS repositories, and each directory of the job by itself, as the ticket
// opens nothing above it, less those that lie in another one.
func (r *runner) mounts(p place) ([]private.Mount, error) {
	list, err := r.repositories(p)
	if err != nil {
		return nil, err
	}
	repositories := len(list)
	for _, top := range topmost(r.Job.Dirs) {
		config := MountConfig{
			Server: r.Job.Server, Path: top.Path,
			Tickets: []string{string(r.Ticket.Format())}, Auth: "ticket",
			Helper:         p.plain,
			ConnectTimeout: r.ConnectTimeout, ServerTimeout: r.ServerTimeout,
		}
		readOnly := true
		for _, d := range r.Job.Dirs {
			if within(d.Path, top.Path) {
				config.Check = append(config.Check, d.Path)
				readOnly = readOnly && !d.Write
			}
			if len(list) == repositories { // once for all
				config.Ask = append(config.Ask, d.Path)
			}
		}
		text, err := json.Marshal(config)
		if err != nil {
			return nil, &Failure{job.ExitInternal, err}
		}
		where := filepath.Join(p.mount, top.Path)
		if p.mount == r.scratch.mount() {
			if err := os.MkdirAll(where, 0o700); err != nil {
				return nil, &Failure{job.ExitNoScratch, err}
			}
		}
		list = append(list, private.Mount{Where: where, ReadOnly: readOnly, Config: text})
	}
	return list, nil
}

// topmost returns the directories that do not lie in another one.
func topmost(dirs []job.Dir) []job.Dir {
	dirs = slices.Clone(dirs)
	slices.SortFunc(dirs, func(a, b job.Dir) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	var top []job.Dir
	for _, d := range dirs {
		if !slices.ContainsFunc(top, func(t job.Dir) bool { return within(d.Path, t.Path) }) {
			top = append(top, d)
		}
	}
	return top
}

// within says whether a clean path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
