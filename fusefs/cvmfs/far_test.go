package cvmfs

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// farDelay is how far the proxy is, one way.
const farDelay = 25 * time.Millisecond

// smallFiles is how many files the far tree has: CVMFS_TEST_FILES, as 10000.
func smallFiles(t *testing.T) int {
	text := os.Getenv("CVMFS_TEST_FILES")
	if text == "" {
		return 600
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// manyFiles is a tree of n small files, all different, some of it in catalogs of its
// own.
func manyFiles(n int) map[string]cvmfstest.File {
	files := make(map[string]cvmfstest.File, n)
	for i := range n {
		top := fmt.Sprintf("pkg%02d", i*20/n)
		if i*20/n%5 == 4 {
			files[top] = cvmfstest.File{Nested: true}
		}
		name := fmt.Sprintf("%s/d%02d/file%05d.py", top, i*60/n%60, i)
		files[name] = cvmfstest.File{Content: fmt.Appendf(noise(200+i%3000, uint64(i)), "file %d\n", i)}
	}
	return files
}

// atOnce is the most requests that were under way at a time, at least: those that came
// to the server within less than a round trip. Of two such requests the later one was
// sent before the answer to the earlier one could have arrived.
func atOnce(times []time.Time, roundTrip time.Duration) (most int) {
	slices.SortFunc(times, time.Time.Compare)
	first := 0
	for i, t := range times {
		for t.Sub(times[first]) >= roundTrip {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// TestFarTree reads a tree of small files through a mount, one after the other as tar
// and cat do, by way of a proxy that is far: each object is asked for once, and many at
// a time.
func TestFarTree(t *testing.T) {
	files := manyFiles(smallFiles(t))
	p := publish(t, files)
	proxy := relay(t, p.web.Listener.Addr().String(), farDelay)
	far := func(c *Config) { c.Options.Proxies = [][]string{{"http://" + proxy}} }
	dir := p.mount(t, far)
	begin := time.Now()
	got := readTree(t, dir)
	t.Logf("%d files in %v", len(got), time.Since(begin).Round(time.Millisecond))
	if want := hashes(files); !maps.Equal(got, want) {
		t.Errorf("got %d files, want %d, or other contents", len(got), len(want))
	}
	p.web.mu.Lock()
	times := slices.Clone(p.web.times)
	p.web.mu.Unlock()
	hits := p.web.taken()
	n, most := objects(hits)
	if n != len(p.Objects) || most != 1 || len(hits) != n+2 {
		t.Errorf("%d objects of %d were asked for, one %d times, in %d requests", n, len(p.Objects), most, len(hits))
	}
	if flying := atOnce(times, 2*farDelay); flying < 16 {
		t.Errorf("no more than %d requests were under way at a time", flying)
	} else {
		t.Logf("%d requests were under way at a time", flying)
	}
}
