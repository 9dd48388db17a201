package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"skeletonkey/fusefs/cvmfs"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// repositoryHome is where CVMFS repositories are, by their names, on every machine
// that has them.
const repositoryHome = "/cvmfs"

// RepositoryConfig says which CVMFS repository is served at a place.
type RepositoryConfig struct {
	job.Repository
	Proxies   string            // as cvmfs.Config has them
	CacheDir  string            // shared by all jobs of the user on this node
	Variables map[string]string // for symbolic links
}

// repositories lists the mounts of the job's CVMFS repositories, less those that
// this machine shows itself. They take a namespace.
func (r *runner) repositories(p place) ([]private.Mount, error) {
	var list []private.Mount
	for _, repo := range r.Job.CVMFS {
		where := filepath.Join(repositoryHome, repo.Name)
		if cvmfs.HostMounted(repo.Name) {
			r.Log.Info("the machine has the CVMFS repository", "at", where)
			continue
		}
		if p.plain {
			return nil, fail(job.ExitNoMount, "%s can be shown only in a private namespace", where)
		}
		text, err := json.Marshal(MountConfig{Repository: r.repositoryConfig(repo)})
		if err != nil {
			return nil, &Failure{job.ExitInternal, err}
		}
		list = append(list, private.Mount{Where: where, ReadOnly: true, Config: text})
	}
	return list, nil
}

func (r *runner) repositoryConfig(repo job.Repository) *RepositoryConfig {
	c := &RepositoryConfig{Repository: repo, CacheDir: r.cacheDir(), Variables: r.Job.Environment}
	if o, err := cvmfs.ParseOptions(repo.Options); err == nil && len(o.URLs) > 0 { // what is wrong is said when it is opened
		var groups []string
		for _, proxy := range r.env.proxiesFor(o.URLs[0], r.Job) {
			if proxy == "" {
				proxy = cvmfs.Direct
			}
			groups = append(groups, proxy)
		}
		c.Proxies = strings.Join(groups, ";")
	}
	return c
}

// cacheDir is the place on this node where repositories are cached, by the rules
// by which the job script keeps the runtime.
func (r *runner) cacheDir() string {
	switch {
	case r.env.get("SKELETONKEY_CACHE") != "":
		return filepath.Join(r.env.get("SKELETONKEY_CACHE"), "cvmfs")
	case r.env.get("XDG_CACHE_HOME") != "":
		return filepath.Join(r.env.get("XDG_CACHE_HOME"), "skeletonkey", "cvmfs")
	}
	if home := r.env.get("HOME"); home != "" {
		if info, err := os.Stat(home); err == nil && info.IsDir() {
			return filepath.Join(home, ".cache", "skeletonkey", "cvmfs")
		}
	}
	return filepath.Join(filepath.Dir(r.scratch.dir), "skeletonkey-"+strconv.Itoa(os.Getuid()), "cvmfs")
}

// serveRepository opens a repository and mounts it. What comes back closes both.
func serveRepository(ctx context.Context, log *slog.Logger, m private.Mount, c *RepositoryConfig) (private.Server, error) {
	options, err := cvmfs.ParseOptions(c.Options)
	if err != nil {
		return nil, fail(job.ExitUsage, "options of the CVMFS repository %s: %w", c.Name, err)
	}
	config := cvmfs.Config{
		Name: c.Name, Options: options, Proxies: c.Proxies, CacheDir: c.CacheDir, Variables: c.Variables, Log: log,
	}
	if c.PublicKey != "" {
		config.Keys = [][]byte{[]byte(c.PublicKey)}
	}
	repo, err := cvmfs.Open(ctx, config)
	if err != nil {
		return nil, &Failure{repositoryCode(err), err}
	}
	mounted, err := repo.Mount(m.Where)
	if err != nil {
		return nil, errors.Join(&Failure{job.ExitNoMount, fmt.Errorf("mount %s: %w", m.Where, err)}, repo.Close())
	}
	log.Info("mounted", "repository", c.Name, "revision", repo.Revision())
	return mounted, nil
}

// repositoryCode is the exit code for a repository that cannot be opened.
func repositoryCode(err error) int {
	switch {
	case errors.Is(err, cvmfs.ErrUntrusted), errors.Is(err, cvmfs.ErrCorrupt):
		return job.ExitBadDownload
	case errors.Is(err, cvmfs.ErrUnreachable), errors.Is(err, cvmfs.ErrMissing):
		return job.ExitUnreachable
	case errors.Is(err, cvmfs.ErrUnsupported):
		return job.ExitUsage
	}
	return diskCode(err, job.ExitUsage)
}
