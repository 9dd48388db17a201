package cvmfs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// start starts a client in a process of its own, which reads the whole repository.
func (p *published) start(t *testing.T) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c := p.config(t)
	c.Log = nil
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), clientEnv+"="+string(text))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// tree200 is what clients of processes of their own read.
func tree200() map[string]cvmfstest.File {
	files := make(map[string]cvmfstest.File)
	for i := range 200 {
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = cvmfstest.File{Content: noise(1000+37*i, uint64(i))}
	}
	files["d1"] = cvmfstest.File{Nested: true}
	files["big"] = cvmfstest.File{Content: noise(4<<20, 5), Chunks: []int{1 << 20}}
	return files
}

// TestTenTogether: ten jobs that start at the same time on an empty cache fetch every
// object once, all together.
func TestTenTogether(t *testing.T) {
	t.Parallel()
	files := tree200()
	p := publish(t, files)
	want := fmt.Sprintf("%d %s\n", len(hashes(files)), digestOf(hashes(files)))
	p.web.setStatus(func(*http.Request) int { // so that they really meet
		time.Sleep(5 * time.Millisecond)
		return 0
	})
	var jobs sync.WaitGroup
	for range 10 {
		cmd, out := p.start(t)
		jobs.Go(func() {
			if err := cmd.Wait(); err != nil || out.String() != want {
				t.Errorf("a client read %q, %v; want %q", out, err, want)
			}
		})
	}
	jobs.Wait()
	hits := p.web.taken()
	if n, most := objects(hits); n != len(p.Objects) || most != 1 {
		t.Errorf("%d of %d objects were fetched, one %d times", n, len(p.Objects), most)
	}
	if n := countFiles(t, p.cache, "tmp"); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
}

// TestKilled: a client is killed while it fills the cache. What it had fetched is of
// use to the next one, what it was fetching is no harm, and is swept.
func TestKilled(t *testing.T) {
	t.Parallel()
	files := tree200()
	p := publish(t, files)
	const enough = 60
	var mu sync.Mutex
	seen := 0
	reached := make(chan struct{})
	hold := make(chan struct{})
	p.web.setStatus(func(r *http.Request) int {
		if !strings.Contains(r.URL.Path, "/data/") {
			return 0
		}
		mu.Lock()
		seen++
		if seen == enough {
			close(reached)
		}
		late := seen >= enough
		mu.Unlock()
		if late {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		return 0
	})
	cmd, _ := p.start(t)
	<-reached
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	close(hold)
	if countFiles(t, p.cache, "tmp") == 0 {
		t.Fatal("it was not killed in the middle")
	}
	p.web.taken()
	got, _ := readOnce(t, p)
	if want := hashes(files); !maps.Equal(got, want) {
		t.Errorf("got %d files, want %d, or other contents", len(got), len(want))
	}
	n, most := objects(p.web.taken())
	if most != 1 || n > len(p.Objects)-enough/2 {
		t.Errorf("the next one fetched %d of %d objects, one %d times", n, len(p.Objects), most)
	}
	if n := countFiles(t, p.cache, "tmp"); n != 0 {
		t.Errorf("%d temporary files are left", n)
	}
}

// TestHalfWritten: a file in the cache that a crash of the machine left too short,
// empty or full of zeros is noticed and fetched again.
func TestHalfWritten(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(b []byte) []byte{
		"empty":       func([]byte) []byte { return nil },
		"short":       func(b []byte) []byte { return b[:len(b)-1] },
		"zeros":       func(b []byte) []byte { return make([]byte, len(b)) },
		"a bit":       func(b []byte) []byte { b[0] ^= 1; return b },
		"longer":      func(b []byte) []byte { return append(b, 0) },
		"of a sister": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := publish(t, small)
			readOnce(t, p)
			r := p.open(t)
			f, g := lookupFrom(t, r, r.root, "f"), lookupFrom(t, r, r.root, "nested", "g")
			path := filepath.Join(p.cache, r.store.path(f.object))
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if harm == nil {
				b, err = os.ReadFile(filepath.Join(p.cache, r.store.path(g.object)))
			} else {
				b = harm(b)
			}
			if err != nil || os.WriteFile(path, b, 0o600) != nil {
				t.Fatal(err)
			}
			p.web.taken()
			got, err := readAll(t.Context(), r, 1)
			if err != nil || !maps.Equal(got, hashes(small)) {
				t.Errorf("got %v, %v", got, err)
			}
			if n, _ := objects(p.web.taken()); n != 1 {
				t.Errorf("%d objects were fetched again", n)
			}
		})
	}
}
