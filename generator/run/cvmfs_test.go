package run

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
	"skeletonkey/generator/job"
)

// repoName is the repository's of these tests.
const repoName = "run-test.example.org"

// repoKeys are those of all repositories: to make them takes long.
var repoKeys = sync.OnceValues(cvmfstest.NewKeys)

// bigFile comes in three pieces, of which no two are the same.
var (
	bigFile = []byte(strings.Repeat("abcdefg", 9<<10/7))
	bigSum  = fmt.Sprintf("%x  -", sha256.Sum256(bigFile))
)

// repository is one that a test publishes, on a web server that counts.
type repository struct {
	*cvmfstest.Publisher
	web  *httptest.Server
	mu   sync.Mutex
	hits map[string]int // guarded by mu: by path
}

// publish publishes a repository with two files, one of them in a catalog of its own.
func (n *node) publish() *repository {
	n.t.Helper()
	keys, err := repoKeys()
	check(n.t, err)
	r := &repository{Publisher: cvmfstest.New(n.t.TempDir(), repoName, keys), hits: make(map[string]int)}
	check(n.t, r.Publish(map[string]cvmfstest.File{
		"hello": {Content: []byte("hello\n")}, "lib": {Nested: true}, "lib/big": {Content: bigFile, Chunks: []int{3 << 10}},
		"lib/link": {Link: "$(WHICH)/file"},
	}))
	files := http.FileServer(http.Dir(r.Dir))
	r.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.hits[req.URL.Path]++
		r.mu.Unlock()
		files.ServeHTTP(w, req)
	}))
	n.t.Cleanup(r.web.Close)
	return r
}

// fetched returns how often each object was asked for.
func (r *repository) fetched() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	hits := maps.Clone(r.hits)
	maps.DeleteFunc(hits, func(path string, _ int) bool { return !strings.HasPrefix(path, "/data/") })
	return hits
}

// add gives a job the repository.
func (r *repository) add(j *job.Job) {
	j.CVMFS = append(j.CVMFS, job.Repository{
		Name: repoName, Key: "cvmfs.pub", PublicKey: string(r.Keys.Public()), Options: "timeout=2,timeout_direct=2,url=" + r.web.URL,
	})
}

// TestRepositoryAndData: a job reads a CVMFS repository, beside its data.
func TestRepositoryAndData(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(
			`cd /cvmfs/`+repoName+` && cat hello && sha256sum <lib/big && readlink lib/link && ls`,
			`(: >new) 2>/dev/null && echo wrote`,
			`cp hello "$CHIRP_MOUNT/out/copy"`,
		))
		n.user = user
		repo := n.publish()
		spec := n.dataJob()
		spec.Job.Environment = map[string]string{"WHICH": "this"}
		repo.add(spec.Job)
		cache := n.dir + "/cache"
		res := n.run(spec, how{env: []string{"SKELETONKEY_CACHE=" + cache}})
		res.expect(t, 0, "hello\n"+bigSum+"\nthis/file\nhello\nlib\n")
		n.holds("/out/copy", "hello\n")
		if !exists(cache+"/cvmfs/objects") || strings.Count(res.log, "mounted") != 3 {
			t.Errorf("no cache in %s, or mounts not logged once each:\n%s", cache, res.log)
		}
	})
}

// TestRepositoryFails: what is wrong with a repository has a code of its own, and
// the application does not start.
func TestRepositoryFails(t *testing.T) {
	t.Parallel()
	n := newNode(t, script("echo never"))
	repo := n.publish()
	other, err := cvmfstest.NewKeys()
	check(t, err)
	for name, c := range map[string]struct {
		change func(r *job.Repository)
		exit   int
		text   string
	}{
		"another key":  {func(r *job.Repository) { r.PublicKey = string(other.Public()) }, job.ExitBadDownload, "not to be trusted"},
		"bad option":   {func(r *job.Repository) { r.Options += ",nosuch=1" }, job.ExitUsage, "nosuch: unknown"},
		"no server":    {func(r *job.Repository) { r.Options = "" }, job.ExitUsage, "no server was named"},
		"server away":  {func(r *job.Repository) { r.Options = "url=http://127.0.0.1:1" }, job.ExitUnreachable, "no server can be reached"},
		"cache a file": {func(r *job.Repository) { r.Options += ",cachedir=/dev/null" }, job.ExitUsage, "cache"},
		"not there":    {func(r *job.Repository) { r.Options += "/nosuch" }, job.ExitUnreachable, "/nosuch"},
		"expired":      {func(*job.Repository) { check(t, repo.SignWhitelist(time.Now().Add(-time.Hour))) }, job.ExitBadDownload, "expired"},
	} {
		check(t, repo.SignWhitelist(time.Now().Add(time.Hour)))
		spec := helperSpec{Job: n.job()}
		repo.add(spec.Job)
		c.change(&spec.Job.CVMFS[0])
		res := n.run(spec, how{env: []string{"SKELETONKEY_CACHE=" + t.TempDir()}})
		if res.exit != c.exit || !strings.Contains(res.error, c.text) || res.stdout != "" {
			t.Errorf("%s: exit %d, want %d; output %q, error %q", name, res.exit, c.exit, res.stdout, res.error)
		}
	}
}

// TestRepositoryOfTheMachine: what the machine has at /cvmfs is better than a mount
// of our own; what it lacks there is mounted beside it.
func TestRepositoryOfTheMachine(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`cat /cvmfs/of-the-machine.example.org/file /cvmfs/`+repoName+`/hello`))
	repo := n.publish()
	spec := helperSpec{Job: n.job()}
	spec.Job.CVMFS = []job.Repository{{Name: "of-the-machine.example.org", Options: "url=http://127.0.0.1:1"}}
	repo.add(spec.Job)
	const chroot = `r=$TMPDIR/../root; mkdir $r; mount -t tmpfs tmpfs $r
		for d in bin dev etc lib lib64 proc tmp usr; do
			if [ -L /$d ]; then cp -P /$d $r; elif [ -d /$d ]; then mkdir $r/$d; mount --rbind /$d $r/$d; fi
		done
		mkdir -p $r/cvmfs/of-the-machine.example.org; echo machine >$r/cvmfs/of-the-machine.example.org/file
		exec chroot $r "$0"`
	res := n.run(spec, how{ownMounts: true, dir: "/", before: chroot, env: []string{"SKELETONKEY_CACHE=" + t.TempDir()}})
	res.expect(t, 0, "machine\nhello\n")
	if !strings.Contains(res.log, `the machine has the CVMFS repository" at=/cvmfs/of-the-machine.example.org`) {
		t.Errorf("not said:\n%s", res.log)
	}
}

// TestRepositoryOfManyJobs: jobs of one user share a cache: what ten of them read at
// once is fetched once.
func TestRepositoryOfManyJobs(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`cat /cvmfs/`+repoName+`/hello; sha256sum </cvmfs/`+repoName+`/lib/big`))
	repo := n.publish()
	spec := helperSpec{Job: n.job()}
	repo.add(spec.Job)
	env := []string{"SKELETONKEY_CACHE=" + t.TempDir()}
	var jobs []*running
	for range 10 {
		jobs = append(jobs, n.start(spec, how{env: env}))
	}
	for _, r := range jobs {
		r.end().expect(t, 0, "hello\n"+bigSum+"\n")
	}
	hits := repo.fetched()
	if len(hits) != 7 { // two catalogs, the certificate, a file and three pieces
		t.Errorf("%d objects: %v", len(hits), hits)
	}
	for path, times := range hits {
		if times != 1 {
			t.Errorf("%s was fetched %d times", path, times)
		}
	}
}

// TestRepositoryCache: where the cache is when the usual places cannot be had.
func TestRepositoryCache(t *testing.T) {
	t.Parallel()
	needRoot(t)
	n := newNode(t, script(`cat /cvmfs/`+repoName+`/hello`))
	n.user = true
	repo := n.publish()
	spec := helperSpec{Job: n.job()}
	repo.add(spec.Job)
	for _, env := range []string{"HOME=/", "SKELETONKEY_CACHE=relative", "XDG_CACHE_HOME=/nonexistent"} {
		n.start(spec, how{env: []string{env}}).end().expect(t, 0, "hello\n")
		beside := fmt.Sprintf("%s/skeletonkey-%d", n.base, nobody)
		if !exists(beside + "/cvmfs/objects") {
			t.Errorf("%s: no cache in %s", env, beside)
		}
		check(t, os.RemoveAll(beside))
	}
	// Somebody else has that place: the cache is the job's own.
	beside := fmt.Sprintf("%s/skeletonkey-%d", n.base, nobody)
	check(t, os.Mkdir(beside, 0o755))
	n.start(spec, how{}).end().expect(t, 0, "hello\n")
	check(t, os.Remove(beside))
	if left, err := readNames(n.base); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// TestRepositoryProxies: repositories come by the web proxies that count for the job,
// apart from those of a kind that they cannot use.
func TestRepositoryProxies(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`cat /cvmfs/`+repoName+`/hello`))
	repo := n.publish()
	spec := helperSpec{Job: n.job()}
	repo.add(spec.Job)
	spec.Job.CVMFS[0].Options = "url=http://repo.invalid"
	spec.Job.Application = job.Application{Script: "cat", Arguments: []string{"/cvmfs/" + repoName + "/hello"}}
	env := []string{"OSG_SQUID_LOCATION=socks5://127.0.0.1:1", "http_proxy=" + repo.web.URL, "SKELETONKEY_CACHE=" + t.TempDir()}
	n.run(spec, how{env: env}).expect(t, 0, "hello\n")
	env[0] = "OSG_SQUID_LOCATION=http://127.0.0.1:1" // a dead one is passed over
	env[2] = "SKELETONKEY_CACHE=" + t.TempDir()
	n.run(spec, how{env: env}).expect(t, 0, "hello\n")
}
