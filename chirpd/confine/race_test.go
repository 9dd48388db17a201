package confine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	secret = "secret from outside"
	marker = "only-outside" // a name that nobody makes inside
)

// attack makes a tree in which swappers exchange, without pause, a directory and a file
// with links that lead outside, and move a directory up and down under a walker's feet.
// Outside, every name that the victims use is there.
func attack(t *testing.T, tr *tree) (stop func()) {
	t.Helper()
	for path, content := range map[string]string{"f": secret, "sub/f": secret, "remove/f": secret, "d/f": secret, marker: secret} {
		path = filepath.Join(tr.outside, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o777))
		must(t, os.WriteFile(path, []byte(content), 0o666))
	}
	tr.write("d/f", "inside")
	tr.write("d/sub/f", "inside")
	tr.write("file", "inside")
	tr.write("deep/a/b/f", "inside")
	tr.write("outside/f", "inside")
	tr.symlink("../outside", "dlink")
	tr.symlink("../outside/f", "flink")
	tr.symlink("../../../outside/f", "deep/a/b/up")
	tr.symlink("deep/a/b/../../../../outside/f", "dots")
	var swappers sync.WaitGroup
	var done atomic.Bool
	swap := func(flags uint, paths ...string) {
		swappers.Go(func() {
			for i := 0; !done.Load(); i++ {
				from, to := tr.real(paths[0]), tr.real(paths[1])
				if flags == 0 && i%2 == 1 {
					from, to = to, from
				}
				unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, flags)
			}
		})
	}
	swap(unix.RENAME_EXCHANGE, "d", "dlink")
	swap(unix.RENAME_EXCHANGE, "file", "flink")
	swap(0, "deep/a/b", "b")
	return func() { done.Store(true); swappers.Wait() }
}

// outsideState is everything below the place outside, names and contents.
func outsideState(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		all.WriteString(path + " " + info.Mode().String())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all.WriteString(" " + string(data))
		}
		all.WriteString("\n")
		return nil
	}))
	return all.String()
}

// victims are what clients ask for meanwhile. Each returns what it read.
var victims = map[string]func(*Root) string{
	"read":        func(r *Root) string { return first(r.get("/d/f")) },
	"read file":   func(r *Root) string { return first(r.get("/file")) },
	"read deep":   func(r *Root) string { return first(r.get("/deep/a/b/up")) + first(r.get("/dots")) },
	"read parent": func(r *Root) string { return first(r.get("/deep/a/b/../../../../outside/f")) },
	"list": func(r *Root) string {
		var names strings.Builder
		r.Do("/d", true, func(a *At) error {
			return a.ReadDir(true, func(e *Entry) error { names.Write(e.Name); return nil })
		})
		return names.String()
	},
	"write": func(r *Root) string {
		for _, path := range []string{"/d/f", "/file", "/d/new", "/flink"} {
			r.Do(path, true, func(a *At) error {
				f, _, err := a.OpenFile(unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC, 0o666)
				if err == nil {
					f.WriteString("written")
					f.Close()
				}
				return err
			})
		}
		return ""
	},
	"put": func(r *Root) string {
		(&tree{Root: r}).put("/d/f", "put", 0o600, CommitOptions{})
		(&tree{Root: r}).put("/file", "put", 0o600, CommitOptions{})
		return ""
	},
	"names": func(r *Root) string {
		for _, path := range []string{"/d/x", "/d/sub", "/d/remove", "/dlink/f"} {
			r.Do(path, false, func(a *At) error {
				a.Mkdir(0o777)
				a.Chmod(0o700)
				a.Truncate(1)
				a.Utimens(unix.Timespec{}, unix.Timespec{})
				a.Setxattr("user.x", nil, 0)
				a.WritePrivate(".__acl", []byte("x"), 0o600)
				return a.RemoveAll(context.Background(), func(*At) error { return nil })
			})
		}
		return ""
	},
	"links": func(r *Root) string {
		from, err := r.Walk("/d/f", false)
		if err != nil {
			return ""
		}
		defer from.Close()
		to, err := r.Walk("/d/linked", false)
		if err != nil {
			return ""
		}
		defer to.Close()
		to.Link(from)
		from.Rename(to)
		to.Unlink()
		return ""
	},
	"private": func(r *Root) string {
		var text string
		r.Do("/d/f", true, func(a *At) error {
			data, _, err := a.ReadPrivate(".__acl", 100)
			text = string(data)
			if above, err := a.Nearest(".__acl"); err == nil {
				above.Close()
			}
			return err
		})
		return text
	},
}

func first(s string, _ error) string { return s }

// Nothing outside is read, written, listed or removed while names are swapped.
func TestNothingEscapesUnderRaces(t *testing.T) {
	inMemory(t)
	suite(t, func(tr *tree) {
		must(tr, os.WriteFile(tr.outside+"/.__acl", []byte(secret), 0o644))
		stop := attack(tr.T, tr)
		before := outsideState(tr.T, tr.outside)
		var clients sync.WaitGroup
		end := time.Now().Add(time.Second)
		for name, victim := range victims {
			clients.Go(func() {
				for time.Now().Before(end) {
					if got := victim(tr.Root); strings.Contains(got, secret) || strings.Contains(got, marker) {
						tr.Errorf("%s got %q", name, got)
						return
					}
				}
			})
		}
		clients.Wait()
		stop()
		if after := outsideState(tr.T, tr.outside); after != before {
			tr.Errorf("outside was\n%s and is\n%s", before, after)
		}
	})
}

// The same attack against a server that checks each path and then opens it.
func TestAttackWorksWithoutTheDefence(t *testing.T) {
	inMemory(t)
	tr := newTree(t, Options{})
	defer attack(t, tr)()
	read := func(path string) string {
		full := filepath.Join(tr.dir, path)
		if real, err := filepath.EvalSymlinks(full); err != nil || !strings.HasPrefix(real, tr.dir+"/") {
			return ""
		}
		data, _ := os.ReadFile(full)
		return string(data)
	}
	for range 1_000_000 {
		if read("d/f") == secret || read("file") == secret {
			return
		}
	}
	t.Error("the attack failed: it would prove nothing about the defence")
}

// Do walks again when the name turned into a link, and hands on other errors.
func TestDoWalksAgain(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "inside")
	tr.symlink("g", "l")
	tr.write("g", "inside, too")
	swaps := 0
	err := tr.Do("/f", true, func(a *At) error {
		if swaps < 3 {
			swaps++
			must(t, unix.Renameat2(unix.AT_FDCWD, tr.real("f"), unix.AT_FDCWD, tr.real("l"), unix.RENAME_EXCHANGE))
		}
		f, _, err := a.OpenFile(unix.O_RDONLY, 0)
		if err == nil {
			f.Close()
		}
		return err
	})
	// The second walk follows the link, whose target nobody swaps.
	if err != nil || swaps != 2 {
		t.Errorf("%v after %d swaps", err, swaps)
	}
	own := errors.New("own")
	if err := tr.Do("/f", true, func(*At) error { return own }); err != own {
		t.Error(err)
	}
}
