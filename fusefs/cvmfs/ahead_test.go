package cvmfs

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// shelf is a directory of 100 small files, two large ones and some directories.
func shelf() map[string]cvmfstest.File {
	files := make(map[string]cvmfstest.File)
	for i := range 100 {
		files[fmt.Sprintf("d/f%02d", i)] = cvmfstest.File{Content: fmt.Appendf(nil, "file %d", i)}
	}
	for _, d := range []string{"e1", "e2", "e3", "e4"} {
		files[d+"/x"] = cvmfstest.File{Content: []byte("x in " + d)}
		files[d+"/y"] = cvmfstest.File{Content: []byte("y in " + d)}
	}
	files["e4"] = cvmfstest.File{Nested: true}
	files["d/f00a"] = cvmfstest.File{Content: noise(smallFile+1, 1)}
	files["d/f00b"] = cvmfstest.File{Content: noise(smallFile+1, 2), Chunks: []int{1 << 16}}
	return files
}

// reader does what a reader of a mounted repository does, without a mount.
type reader struct {
	t *testing.T
	r *Repository
	p *published
}

// list reads directories.
func (r *reader) list(paths ...string) {
	r.t.Helper()
	for _, path := range paths {
		s := r.r.root
		if path != "" {
			var err error
			if s, err = r.r.tree.enter(r.t.Context(), s.below(lookupFrom(r.t, r.r, s, path))); err != nil {
				r.t.Fatal(err)
			}
		}
		l, err := r.r.list(r.t.Context(), s)
		if err != nil {
			r.t.Fatal(err)
		}
		r.r.ahead.listed(l)
	}
}

// open opens files, and returns how many objects were fetched by then and what is
// still planned.
func (r *reader) open(paths ...string) int {
	r.t.Helper()
	for _, path := range paths {
		s := r.r.root
		dir, name, _ := strings.Cut(path, "/")
		s, err := r.r.tree.enter(r.t.Context(), s.below(lookupFrom(r.t, r.r, s, dir)))
		if err != nil {
			r.t.Fatal(err)
		}
		e := lookupFrom(r.t, r.r, s, name)
		if _, err := readNode(r.t.Context(), &node{repo: r.r, spot: s.below(e), entry: e}); err != nil {
			r.t.Fatal(err)
		}
	}
	r.r.ahead.work.Wait()
	r.r.fetch.work.Wait()
	n, _ := objects(r.p.web.taken())
	return n
}

// TestAhead: who is kept ahead of, and how far.
func TestAhead(t *testing.T) {
	p := publish(t, shelf())
	for name, c := range map[string]struct {
		listed, opened []string
		least, most    int
	}{
		"a directory that nobody listed":  {nil, []string{"d/f00", "d/f01"}, 2, 2},
		"one file in the middle":          {[]string{"d"}, []string{"d/f50"}, 1, 1},
		"some here and there":             {[]string{"d"}, []string{"d/f50", "d/f20", "d/f90"}, 3, 3},
		"the first file":                  {[]string{"d"}, []string{"d/f00"}, 1 + firstWindow, 1 + firstWindow},
		"the first ones":                  {[]string{"d"}, []string{"d/f00", "d/f01", "d/f02"}, 10, 25},
		"two that are near in the middle": {[]string{"d"}, []string{"d/f50", "d/f52"}, 2 + firstWindow, 2 + firstWindow},
		"at the end, no other was listed": {[]string{"", "d"}, []string{"d/f98", "d/f99"}, 2, 2},
		"a walk, at the second directory": {[]string{"", "d", "e1"}, []string{"e1/x"}, 5, 7}, // and e2, and e3
		"a walk that comes to a catalog":  {[]string{"", "e2", "e3"}, []string{"e3/x", "e3/y"}, 5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p.cache = t.TempDir() + "/c"
			r := &reader{t, p.open(t), p}
			r.list(c.listed...)
			p.web.taken()
			if n := r.open(c.opened...); n < c.least || n > c.most {
				t.Errorf("%d objects were fetched, not %d to %d", n, c.least, c.most)
			}
		})
	}
}

// TestParallelReaders: several read the whole tree through one mount.
func TestParallelReaders(t *testing.T) {
	t.Parallel()
	files := shelf()
	maps.Copy(files, variety())
	p := publish(t, files)
	dir := p.mount(t)
	want := hashes(files)
	delete(want, "/.cvmfs/secret")
	var work sync.WaitGroup
	for range 6 {
		work.Go(func() {
			if got := readTree(t, dir); !maps.Equal(got, want) {
				t.Errorf("%d files, or other contents", len(got))
			}
		})
	}
	work.Wait()
	if n, most := objects(p.web.taken()); most != 1 {
		t.Errorf("of %d objects one was fetched %d times", n, most)
	}
}

// TestReaderCanBeKilled: a process that waits for a server which does not answer can be
// killed at once, and others go on.
func TestReaderCanBeKilled(t *testing.T) {
	t.Parallel()
	p := publish(t, shelf())
	dir := p.mount(t)
	if _, err := os.ReadDir(dir + "/d"); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	asked := make(chan struct{}, 100)
	p.web.setStatus(func(r *http.Request) int {
		asked <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		return 0
	})
	cat := exec.Command("cat", dir+"/d/f50")
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cat.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_ = cat.Wait()
	}()
	select {
	case <-gone:
	case <-time.After(15 * time.Second):
		t.Error("it cannot be killed")
	}
	close(release)
	<-gone
	if b, err := os.ReadFile(dir + "/d/f50"); err != nil || string(b) != "file 50" {
		t.Errorf("afterwards: %q, %v", b, err)
	}
}
