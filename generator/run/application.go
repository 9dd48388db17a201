package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"skeletonkey/generator/job"
	"skeletonkey/installer"
)

// bring fetches the application's archive and unpacks it into the scratch
// directory. The archive does not stay.
func (r *runner) bring(ctx context.Context) error {
	app := &r.Job.Application
	if app.Location == "" {
		return nil
	}
	location, local, err := locate(app.Location)
	if err != nil {
		return &Failure{job.ExitUsage, err}
	}
	archive := location
	if !local || app.SHA256 != "" {
		if err := r.fetch(ctx, location); err != nil {
			return err
		}
		archive = r.scratch.archive()
	}
	if err := r.unpack(ctx, archive); err != nil {
		return err
	}
	if archive != location {
		if err := os.Remove(archive); err != nil {
			return &Failure{job.ExitNoScratch, err}
		}
	}
	return nil
}

// locate tells whether an archive lies on this machine, and then returns its path.
func locate(location string) (where string, local bool, err error) {
	if !strings.Contains(location, "://") {
		where, err = filepath.Abs(location)
		return where, true, err
	}
	u, err := url.Parse(location)
	if err != nil {
		return "", false, err
	}
	if u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") {
		return u.Path, true, nil
	}
	return location, false, nil
}

// fetch brings the archive to the scratch directory, and checks its checksum.
func (r *runner) fetch(ctx context.Context, location string) error {
	app := &r.Job.Application
	r.phase("fetch", "location", location, "sha256", app.SHA256)
	last := &lastWord{Handler: r.Log.Handler()}
	got, err := installer.Fetch(ctx, location, r.scratch.archive(), installer.FetchOptions{
		SHA256: app.SHA256, Proxies: r.env.proxiesFor(location, r.Job), Mode: 0o600, Log: slog.New(last),
	})
	last.say(ctx, err)
	if err != nil {
		return failed(ctx, archiveCode(err), fmt.Errorf("the application: %w", err))
	}
	r.Log.Info("fetched the application", "bytes", got.Size, "sha256", got.SHA256, "proxy", got.Proxy)
	return nil
}

// unpack extracts the archive into the working directory.
func (r *runner) unpack(ctx context.Context, archive string) error {
	r.phase("unpack", "archive", archive)
	sum, err := installer.UnpackFile(ctx, archive, r.scratch.work(), installer.UnpackOptions{})
	if err != nil {
		return failed(ctx, archiveCode(err), fmt.Errorf("the application: %w", err))
	}
	r.Log.Info("unpacked the application", "format", sum.Format, "files", sum.Files, "bytes", sum.Bytes)
	return nil
}

// link makes a link to each of the job's directories, as they appear below mount,
// in the working directory.
func (r *runner) link(mount string) error {
	for _, d := range r.Job.Dirs {
		name := filepath.Join(r.scratch.work(), d.Name)
		err := os.Symlink(filepath.Join(mount, d.Path), name)
		if errors.Is(err, os.ErrExist) {
			return fail(job.ExitBadDownload, "the application's archive has an entry %q, the name under which the directory %s is to appear", d.Name, d.Path)
		}
		if err != nil {
			return &Failure{job.ExitNoScratch, err}
		}
	}
	return nil
}

// unlink removes what link made.
func (r *runner) unlink() error {
	for _, d := range r.Job.Dirs {
		if err := os.Remove(filepath.Join(r.scratch.work(), d.Name)); err != nil {
			return &Failure{job.ExitNoScratch, err}
		}
	}
	return nil
}

// saveProxy writes the X.509 proxy file, for the user alone, and returns its name,
// "" when there is none.
func (r *runner) saveProxy() (string, error) {
	if len(r.UserProxy) == 0 {
		return "", nil
	}
	name := r.scratch.proxy()
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", &Failure{job.ExitNoScratch, err}
	}
	_, err = f.Write(r.UserProxy)
	if err := errors.Join(err, f.Chmod(0o600), f.Close()); err != nil {
		return "", &Failure{job.ExitNoScratch, fmt.Errorf("write the X.509 proxy: %w", err)}
	}
	return name, nil
}

// command returns the program and its arguments. A script without a slash that is
// not in the working directory is looked up in PATH when it is started.
func (r *runner) command() (path string, argv []string) {
	script := r.Job.Application.Script
	switch inWork := filepath.Join(r.scratch.work(), script); {
	case filepath.IsAbs(script):
		path = script
	case strings.Contains(script, "/") || exists(inWork):
		path = inWork
	}
	argv = []string{script}
	if path != "" {
		argv[0] = path
	}
	argv = append(argv, r.Job.Application.Arguments...)
	return path, append(argv, r.Args...)
}

// exists says whether there is something of that name.
func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}
