package cvmfs

import (
	"context"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Config says which repository is opened, and how.
type Config struct {
	// Name is the repository's full name, such as sft.cern.ch.
	Name string
	// Options come from the job file; URLs are needed.
	Options Options
	// Keys are public keys in PEM, besides those of Options.PubKeys. One at least is
	// needed.
	Keys [][]byte
	// Proxies are used when Options has none, written as its proxies=; "" is no proxy.
	Proxies string
	// CacheDir is where the objects of all repositories are cached on this node;
	// Options.CacheDir counts more. "" is skeletonkey/cvmfs in the user's cache
	// directory. It must be on a local disk for the best speed.
	CacheDir string
	// Variables are what $(NAME) in symbolic links stands for.
	Variables map[string]string
	// ShowOwner shows the owners that the repository has, instead of this process's.
	ShowOwner bool
	// Log gets what goes on; nil is slog.Default().
	Log *slog.Logger
}

// Repository is one revision of a repository: the newest one at the time of Open.
// It is safe for concurrent use.
type Repository struct {
	name      string
	log       *slog.Logger
	variables map[string]string
	owner     *[2]uint32 // shown instead of the catalogs' owners
	keys      []*rsa.PublicKey
	cancel    context.CancelFunc
	net       *network
	store     *store
	fetch     *fetcher
	tree      *tree
	listings  *listings
	ahead     *ahead
	manifest  *manifest
	root      spot
	rootEntry *entry
	once      sync.Once
	closed    error
}

var repoName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

// Open verifies the repository's newest manifest and opens its root catalog. The
// caller must call Close. Errors are *Error; errors.Is tells ErrUntrusted,
// ErrExpired, ErrUnreachable and the rest apart. ctx ends only what Open does.
func Open(ctx context.Context, c Config) (*Repository, error) {
	r, err := newRepository(c)
	if err == nil {
		if err = r.begin(ctx); err != nil {
			err = errors.Join(err, r.Close())
		}
	}
	if err != nil {
		return nil, &Error{Repo: c.Name, Op: "open", Err: err}
	}
	r.log.Info("cvmfs: opened", "revision", r.manifest.revision, "published", r.manifest.time, "cache", r.store.dir.Name())
	return r, nil
}

// newRepository checks the configuration and opens the cache.
func newRepository(c Config) (*Repository, error) {
	servers, proxies, err := c.ways()
	if err != nil {
		return nil, err
	}
	keys, err := loadKeys(c.Keys, c.Options.PubKeys)
	if err != nil {
		return nil, err
	}
	log := c.Log
	if log == nil {
		log = slog.Default()
	}
	r := &Repository{name: c.Name, log: log.With("repo", c.Name), variables: c.Variables, keys: keys, listings: newListings()}
	if !c.ShowOwner {
		r.owner = &[2]uint32{uint32(os.Getuid()), uint32(os.Getgid())}
	}
	if len(c.Options.Ignored) > 0 {
		r.log.Info("cvmfs: options without effect here", "options", strings.Join(c.Options.Ignored, ","))
	}
	dir, err := c.cacheDir()
	if err != nil {
		return nil, err
	}
	quota := c.Options.QuotaLimit
	if quota == 0 {
		quota = defaultQuota
	}
	if r.store, err = openStore(dir, max(quota<<20, -1), r.log); err != nil {
		return nil, fmt.Errorf("cache: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.net = newNetwork(servers, proxies, c.Options, r.log)
	r.fetch = newFetcher(ctx, r.net, r.store)
	if r.tree, err = newTree(r.fetch); err != nil {
		return nil, errors.Join(err, r.store.close())
	}
	r.ahead = newAhead(r)
	return r, nil
}

// ways are the servers and the proxies.
func (c *Config) ways() (servers []string, proxies [][]string, err error) {
	if !repoName.MatchString(c.Name) || strings.Contains(c.Name, "..") {
		return nil, nil, fmt.Errorf("%q is no name of a repository", c.Name)
	}
	if n := c.Options.RepoName; n != "" && n != c.Name {
		return nil, nil, fmt.Errorf("repo_name=%s contradicts the repository's name", n)
	}
	if len(c.Options.URLs) == 0 {
		return nil, nil, errors.New("no server was named: add url=http://HOST/cvmfs/" + c.Name + " to its options")
	}
	org, _, _ := strings.Cut(c.Name, ".")
	for _, u := range c.Options.URLs {
		servers = append(servers, strings.NewReplacer("@fqrn@", c.Name, "@org@", org).Replace(u))
	}
	proxies = c.Options.Proxies
	if len(proxies) == 0 {
		if proxies, err = parseProxies(c.Proxies); err != nil {
			return nil, nil, fmt.Errorf("proxies: %w", err)
		}
	}
	return servers, proxies, nil
}

// cacheDir is where the cache is to be.
func (c *Config) cacheDir() (string, error) {
	for _, dir := range []string{c.Options.CacheDir, c.CacheDir} {
		if dir != "" {
			return filepath.Abs(dir)
		}
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no place for the cache: %w", err)
	}
	return filepath.Join(dir, "skeletonkey", "cvmfs"), nil
}

// begin finds the newest manifest that can be trusted, and opens its root catalog.
func (r *Repository) begin(ctx context.Context) (err error) {
	if r.manifest, err = r.findManifest(ctx); err != nil {
		return err
	}
	ref := catalogRef{object: r.manifest.catalog, size: r.manifest.size}
	if r.manifest.alt {
		ref.alt = ".cvmfsalt-" + r.manifest.catalog.name()
	}
	r.root = spot{catalog: ref}
	if r.rootEntry, err = r.tree.root(ctx, ref); err != nil {
		return fmt.Errorf("root catalog: %w", err)
	}
	return nil
}

// Revision is the number of the revision that is shown.
func (r *Repository) Revision() uint64 { return r.manifest.revision }

// Published is when the revision was published; zero when the repository does not say.
func (r *Repository) Published() time.Time { return r.manifest.time }

// Close ends all fetching and closes the cache. The repository must not be mounted
// any more.
func (r *Repository) Close() error {
	r.once.Do(func() {
		r.cancel()
		r.ahead.close()
		r.fetch.work.Wait()
		r.closed = errors.Join(r.tree.close(), r.store.close())
		r.net.close()
		r.log.Info("cvmfs: closed", "requests", r.net.requests.Load(), "objects", r.fetch.brings.Load(), "bytes", r.net.sent.Load())
	})
	return r.closed
}
