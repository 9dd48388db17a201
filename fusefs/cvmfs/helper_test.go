package cvmfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gofs "github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sync/errgroup"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

const testName = "test.example.org"

// testKeys are the keys of all repositories that tests publish.
var testKeys = sync.OnceValue(func() *cvmfstest.Keys {
	k, err := cvmfstest.NewKeys()
	if err != nil {
		panic(err)
	}
	return k
})

// web is a web server that remembers what it was asked for. It answers as a proxy too.
type web struct {
	*httptest.Server
	root string

	mu     sync.Mutex
	hits   map[string]int                        // guarded by mu: by path
	times  []time.Time                           // guarded by mu: of the requests for objects
	forge  func(path string, data []byte) []byte // guarded by mu: changes what is sent; nil data is a 404
	status func(r *http.Request) int             // guarded by mu: an answer without a body; 0 for none
}

// serveDir serves root until the test ends.
func serveDir(t testing.TB, root string) *web {
	t.Helper()
	w := &web{root: root, hits: make(map[string]int)}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.hits[r.URL.Path]++
	if strings.Contains(r.URL.Path, "/data/") {
		w.times = append(w.times, time.Now())
	}
	forge, status := w.forge, w.status
	w.mu.Unlock()
	if status != nil {
		if code := status(r); code != 0 {
			http.Error(rw, "no", code)
			return
		}
	}
	data, err := os.ReadFile(filepath.Join(w.root, filepath.Clean(r.URL.Path)))
	if err == nil && forge != nil {
		if data = forge(r.URL.Path, data); data == nil {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Length", fmt.Sprint(len(data)))
	_, _ = rw.Write(data)
}

// setForge lets the server change what it sends; nil ends that.
func (w *web) setForge(forge func(path string, data []byte) []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forge = forge
}

func (w *web) setStatus(status func(r *http.Request) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.status = status
}

// taken returns how often each path was asked for since the last call.
func (w *web) taken() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	hits := w.hits
	w.hits, w.times = make(map[string]int), nil
	return hits
}

// objects are the paths of objects among hits, with the most hits that one had.
func objects(hits map[string]int) (n, most int) {
	for path, count := range hits {
		if strings.Contains(path, "/data/") {
			n++
			most = max(most, count)
		}
	}
	return n, most
}

// published is a repository that a test publishes and serves.
type published struct {
	*cvmfstest.Publisher
	web   *web
	cache string
}

// publish publishes files and serves them.
func publish(t testing.TB, files map[string]cvmfstest.File, settings ...func(*cvmfstest.Publisher)) *published {
	t.Helper()
	dir := t.TempDir()
	p := cvmfstest.New(dir, testName, testKeys())
	for _, set := range settings {
		set(p)
	}
	if err := p.Publish(files); err != nil {
		t.Fatal(err)
	}
	return &published{p, serveDir(t, dir), filepath.Join(t.TempDir(), "cache")}
}

// config is how the repository is opened.
func (p *published) config(t testing.TB) Config {
	return Config{
		Name:     testName,
		Keys:     [][]byte{p.Keys.Public()},
		CacheDir: p.cache,
		Options:  Options{URLs: []string{p.web.URL}, Timeout: 20 * time.Second, TimeoutDirect: 20 * time.Second},
		Log:      slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

// open opens the repository until the test ends.
func (p *published) open(t testing.TB, settings ...func(*Config)) *Repository {
	t.Helper()
	r, err := p.try(t, settings...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// try is open without an end to the test when it fails.
func (p *published) try(t testing.TB, settings ...func(*Config)) (*Repository, error) {
	c := p.config(t)
	for _, set := range settings {
		set(&c)
	}
	r, err := Open(t.Context(), c)
	if err == nil {
		t.Cleanup(func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return r, err
}

// readAll reads every file of the repository, some at a time, and returns the hash of
// each by its path.
func readAll(ctx context.Context, r *Repository, parallel int) (map[string]string, error) {
	files := make(map[string]string)
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	err := walk(ctx, r, r.root, func(s spot, e *entry) {
		if e.kind() != 0o100000 {
			return
		}
		g.Go(func() error {
			data, err := readNode(ctx, &node{repo: r, spot: s, entry: e})
			if err != nil {
				return fmt.Errorf("%s: %w", s.path, err)
			}
			mu.Lock()
			defer mu.Unlock()
			files[s.path] = hashOf(data)
			return nil
		})
	})
	if e := g.Wait(); e != nil {
		err = e
	}
	return files, err
}

// walk visits all entries.
func walk(ctx context.Context, r *Repository, s spot, visit func(spot, *entry)) error {
	s, err := r.tree.enter(ctx, s)
	if err != nil {
		return err
	}
	l, err := r.list(ctx, s)
	if err != nil {
		return err
	}
	for i := range l.entries {
		e := &l.entries[i]
		visit(s.below(e), e)
		if e.isDir() {
			if err := walk(ctx, r, s.below(e), visit); err != nil {
				return err
			}
		}
	}
	return nil
}

// readNode reads a file as the kernel does.
func readNode(ctx context.Context, n *node) ([]byte, error) {
	h, err := n.open(ctx)
	if err != nil {
		return nil, err
	}
	reader := h.(interface {
		gofs.FileReader
		gofs.FileReleaser
	})
	defer reader.Release(ctx)
	data := make([]byte, 0, n.entry.size)
	buf := make([]byte, 128<<10)
	for {
		res, errno := reader.Read(ctx, buf, int64(len(data)))
		if errno != 0 {
			return nil, errno
		}
		got, status := res.Bytes(buf)
		if !status.Ok() {
			return nil, fmt.Errorf("%v", status)
		}
		if len(got) == 0 {
			return data, nil
		}
		data = append(data, got...)
	}
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// digestOf is one hash for all files.
func digestOf(files map[string]string) string {
	var all strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&all, "%s %s\n", path, files[path])
	}
	return hashOf([]byte(all.String()))
}

// hashes are those of the files that were published.
func hashes(files map[string]cvmfstest.File) map[string]string {
	all := make(map[string]string)
	for path, f := range files {
		if !f.Dir && !f.Nested && f.Link == "" && f.Bind == "" {
			all["/"+path] = hashOf(f.Content)
		}
	}
	return all
}

// shared is a path in the folder of shared test data; without that the test is
// skipped.
func shared(t testing.TB, path string) string {
	t.Helper()
	root := os.Getenv("SKELETONKEY_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		for err == nil && dir != "/" {
			if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
				break
			}
			dir = filepath.Dir(dir)
		}
		root = filepath.Join(dir, "..", "shared")
	}
	full := filepath.Join(root, path)
	if _, err := os.Stat(full); err != nil {
		t.Skipf("no shared test data here: %v", err)
	}
	return full
}

// missing skips the test for want of a program, or fails it where all must be there.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
