package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"skeletonkey/fusefs/cvmfs"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

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
		where := filepath.Join(private.RepositoryHome, repo.Name)
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
	c := &RepositoryConfig{Repository: repo, Variables: r.Job.Environment}
	o, err := cvmfs.ParseOptions(repo.Options)
	if err != nil || len(o.URLs) == 0 {
		return c // what is wrong is said when it is opened
	}
	if o.CacheDir == "" {
		c.CacheDir = r.cacheDir()
	}
	var groups []string
	for _, proxy := range r.env.proxiesFor(o.URLs[0], r.Job) {
		switch u, err := url.Parse(proxy); {
		case proxy == "":
			groups = append(groups, cvmfs.Direct)
		case err == nil && (u.Scheme == "http" || u.Scheme == "https") && !strings.ContainsAny(proxy, ";|"):
			groups = append(groups, proxy)
		default:
			r.Log.Info("CVMFS repositories do not come by this kind of proxy", "scheme", strings.SplitN(proxy, ":", 2)[0])
		}
	}
	c.Proxies = strings.Join(groups, ";")
	return c
}

// cacheDir is the place on this node where repositories are cached, by the rules by which the job script
// keeps the runtime: one that is ours alone, in the user's cache, else beside the scratch directory. Where
// there is none the job has a cache of its own.
func (r *runner) cacheDir() string {
	base := ""
	switch home := r.env.get("HOME"); {
	case r.env.get("SKELETONKEY_CACHE") != "":
		base = r.env.get("SKELETONKEY_CACHE")
	case r.env.get("XDG_CACHE_HOME") != "":
		base = filepath.Join(r.env.get("XDG_CACHE_HOME"), "skeletonkey")
	case home != "" && exists(home):
		base = filepath.Join(home, ".cache", "skeletonkey")
	}
	for _, base := range []string{base, filepath.Join(filepath.Dir(r.scratch.dir), "skeletonkey-"+strconv.Itoa(os.Getuid()))} {
		if base == "" {
			continue
		}
		dir := filepath.Join(base, "cvmfs")
		err := makeOwn(dir)
		if err == nil {
			return dir
		}
		r.Log.Info("no cache for CVMFS repositories here", "dir", dir, "error", err)
	}
	return filepath.Join(r.scratch.dir, "cvmfs")
}

// makeOwn makes a directory, if need be, and makes sure that we can write into it and nobody else.
func makeOwn(dir string) error {
	if !filepath.IsAbs(dir) {
		return errors.New("it is not absolute")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	switch err := unix.Lstat(dir, &st); {
	case err != nil:
		return err
	case int(st.Uid) != os.Geteuid() || st.Mode&unix.S_IFMT != unix.S_IFDIR || st.Mode&0o022 != 0:
		return errors.New("it is not a directory that only we can write")
	}
	return unix.Access(dir, unix.W_OK|unix.X_OK)
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
