package generator

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// nobody makes the node's runs those of an ordinary user, to whom everything below its directory
// belongs. Where the test itself is an ordinary user nothing has to be done.
func (n *node) nobody() {
	n.t.Helper()
	n.uid = os.Getuid()
	if n.uid != 0 {
		return
	}
	n.uid = 65534
	if err := os.Chmod(filepath.Dir(n.dir), 0o755); err != nil { // testing makes it 0700
		n.t.Fatal(err)
	}
	err := filepath.Walk(n.dir, func(p string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, n.uid, n.uid)
	})
	if err != nil {
		n.t.Fatal(err)
	}
}

// used returns the directory in which the runtime was that ran, relative to the node's.
func (n *node) used() string {
	n.t.Helper()
	runtime := strings.TrimSpace(n.recorded("runtime"))
	dir, err := filepath.Rel(n.dir, filepath.Dir(filepath.Dir(runtime)))
	if err != nil {
		n.t.Fatal(err)
	}
	return dir
}

func (n *node) fetched() int {
	return web.countBelow(strings.TrimPrefix(n.job.Runtime.Location, web.URL) + "/")
}

func TestFetchedOnce(t *testing.T) {
	n := newNode(t)
	for range 3 {
		n.mustRun()
	}
	if n.fetched() != 1 || n.used() != "home/.cache/skeletonkey" {
		t.Errorf("fetched %d times, used %s", n.fetched(), n.used())
	}
	for dir, mode := range map[string]os.FileMode{"": 0o700, "runtime": 0o700, "runtime/skeletonkey-" + sumOf(standIn): 0o700} {
		info, err := os.Stat(n.path("home/.cache/skeletonkey/" + dir))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%q: %v, %v", dir, info.Mode(), err)
		}
	}
}

// Jobs that start together on a node fetch once.
func TestFetchedOnceTogether(t *testing.T) {
	n := newNode(t)
	n.job.Runtime.Location = web.URL + "/slow/together"
	n.write()
	var wg sync.WaitGroup
	for range 5 {
		cmd, said := n.command()
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, said)
			}
		})
	}
	wg.Wait()
	if n.fetched() != 1 {
		t.Errorf("fetched %d times", n.fetched())
	}
	if files := n.left("home"); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A lock that nobody can answer for only delays.
func TestForeignLock(t *testing.T) {
	n := newNode(t)
	n.mkdir("home/.cache/skeletonkey/runtime")
	lock := n.path("home/.cache/skeletonkey/runtime/skeletonkey-" + sumOf(standIn) + ".lock")
	if err := os.Symlink("lock.another-node.1", lock); err != nil {
		t.Fatal(err)
	}
	n.tweak = []string{"-gt 120", "-gt 1"}
	if said := n.mustRun("-d"); !strings.Contains(said, "another job fetches") {
		t.Error(said)
	}
	if _, err := os.Lstat(lock); err == nil {
		t.Error("the lock is still there")
	}
}

// What is in the cache is checked before each use.
func TestTamperedRuntime(t *testing.T) {
	for name, tamper := range map[string]func(t *testing.T, file string) error{
		"content": func(t *testing.T, file string) error {
			return os.WriteFile(file, []byte("#!/bin/sh\nexit 42\n"), 0o700)
		},
		"cut":        func(t *testing.T, file string) error { return os.Truncate(file, 20) },
		"mode":       func(t *testing.T, file string) error { return os.Chmod(file, 0o722) },
		"no execute": func(t *testing.T, file string) error { return os.Chmod(file, 0o600) },
		"link": func(t *testing.T, file string) error {
			if err := os.Rename(file, file+"-moved"); err != nil {
				return err
			}
			return os.Symlink(file+"-moved", file)
		},
		"owner": func(t *testing.T, file string) error {
			if os.Getuid() != 0 {
				t.Skip("only root can give a file away")
			}
			return os.Chown(file, 1, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.mustRun()
			if err := tamper(t, n.path("home/.cache/skeletonkey/runtime/skeletonkey-"+sumOf(standIn))); err != nil {
				t.Fatal(err)
			}
			n.mustRun()
			if n.fetched() != 2 {
				t.Errorf("fetched %d times", n.fetched())
			}
		})
	}
}

// A cache that somebody else could change is not used; without the checks it would be.
func TestUnsafeCache(t *testing.T) {
	uid := "skeletonkey-65534"
	if os.Getuid() != 0 {
		t.Skip("only root can set up what another user would")
	}
	for name, plant := range map[string]func(n *node) error{
		"of another user": func(n *node) error { return os.Mkdir(n.path("tmp/"+uid), 0o777) },
		"link": func(n *node) error {
			n.mkdir("elsewhere")
			if err := os.Chown(n.path("elsewhere"), 65534, 65534); err != nil {
				return err
			}
			return os.Symlink(n.path("elsewhere"), n.path("tmp/"+uid))
		},
		"writable by all": func(n *node) error {
			if err := os.Mkdir(n.path("tmp/"+uid), 0o700); err != nil {
				return err
			}
			if err := os.Chmod(n.path("tmp/"+uid), 0o777); err != nil {
				return err
			}
			return os.Chown(n.path("tmp/"+uid), 65534, 65534)
		},
		"parent without sticky bit": func(n *node) error { return os.Chmod(n.path("tmp"), 0o777) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.nobody()
			if err := os.Chmod(n.path("tmp"), 0o1777); err != nil {
				t.Fatal(err)
			}
			n.mkdir("good")
			if err := os.Chown(n.path("good"), 65534, 65534); err != nil {
				t.Fatal(err)
			}
			if err := plant(n); err != nil {
				t.Fatal(err)
			}
			n.env = []string{n.env[0], "TMPDIR=" + n.path("good"), "OSG_WN_TMP=" + n.path("tmp")}
			if said := n.mustRun("-d"); n.used() != "good/"+uid {
				t.Errorf("used %s: %s", n.used(), said)
			}
			// The attack would work: with the checks off the planted directory is used.
			n.tweak = []string{`d????-??-*" $sk_uid") return 0 ;;`, `*) return 0 ;;`, `d???????w[!tT]*)`, `never)`}
			if n.mustRun(); n.used() != "tmp/"+uid && name != "of another user" {
				t.Errorf("without the checks: used %s", n.used())
			}
		})
	}
}

// Case 40: places for the runtime, in order.
func TestCachePlaces(t *testing.T) {
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"SKELETONKEY_CACHE":   {[]string{"SKELETONKEY_CACHE=@/own/cache", "XDG_CACHE_HOME=@/xdg", "HOME=@/home"}, "own/cache"},
		"slash at the end":    {[]string{"SKELETONKEY_CACHE=@/own/cache/"}, "own/cache"},
		"XDG_CACHE_HOME":      {[]string{"XDG_CACHE_HOME=@/xdg/made", "HOME=@/home"}, "xdg/made/skeletonkey"},
		"HOME":                {[]string{"HOME=@/home", "TMPDIR=@/tmp"}, "home/.cache/skeletonkey"},
		"no HOME":             {[]string{"TMPDIR=@/tmp"}, "tmp/skeletonkey-UID"},
		"HOME is not there":   {[]string{"HOME=/nonexistent", "TMPDIR=@/tmp"}, "tmp/skeletonkey-UID"},
		"HOME is read-only":   {[]string{"HOME=@/readonly", "TMPDIR=@/tmp"}, "tmp/skeletonkey-UID"},
		"relative":            {[]string{"XDG_CACHE_HOME=cache", "TMPDIR=@/tmp"}, "tmp/skeletonkey-UID"},
		"condor":              {[]string{"_CONDOR_SCRATCH_DIR=@/own", "OSG_WN_TMP=@/xdg", "TMPDIR=@/tmp"}, "own/skeletonkey-UID"},
		"OSG":                 {[]string{"OSG_WN_TMP=@/xdg", "TMPDIR=@/tmp"}, "xdg/skeletonkey-UID"},
		"scratch not there":   {[]string{"OSG_WN_TMP=/nonexistent", "TMPDIR=@/tmp/"}, "tmp/skeletonkey-UID"},
		"scratch is full":     {[]string{"OSG_WN_TMP=@/readonly", "TMPDIR=@/tmp"}, "tmp/skeletonkey-UID"},
		"blanks in the names": {[]string{"SKELETONKEY_CACHE=@/a b/*"}, "a b/*"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			for _, dir := range []string{"own", "xdg", "readonly", "a b"} {
				n.mkdir(dir)
			}
			n.nobody()
			if err := os.Chmod(n.path("readonly"), 0o500); err != nil {
				t.Fatal(err)
			}
			n.env = n.env[:1]
			for _, word := range c.env {
				n.setenv(strings.ReplaceAll(word, "@", n.dir))
			}
			said := n.mustRun("-d")
			if want := strings.ReplaceAll(c.want, "UID", itoa(n.uid)); n.used() != want {
				t.Errorf("used %s, want %s: %s", n.used(), want, said)
			}
		})
	}
}

// Case 40: a bare environment, a mask that hides everything, a working directory that is read-only.
func TestBareNode(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		n.nobody()
		if err := os.Chmod(n.path("work"), 0o500); err != nil {
			t.Fatal(err)
		}
		bare := []string{"PATH=/usr/bin:/bin", "SKELETONKEY_CACHE=" + n.path("tmp/cache")}
		for _, more := range [][]string{{"HOME=/nonexistent", "TMPDIR=/nonexistent"}, {"HOME=", "TMPDIR=" + n.path("work"), "IFS=/-"}} {
			n.env = append(bare, more...)
			n.mustRun("a b")
		}
		n.shell = append([]string{"sh", "-c", `umask 077; exec "$@"`, "sh"}, n.shell...)
		if err := os.RemoveAll(n.path("tmp/cache")); err != nil {
			t.Fatal(err)
		}
		n.mustRun()
		if files := n.left("work"); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	})
}
