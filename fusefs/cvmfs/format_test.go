package cvmfs

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// noise are bytes that do not compress.
func noise(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte(fmt.Appendf(nil, "%032d", seed))).Read(b)
	return b
}

// variety is a tree with one of everything.
func variety() map[string]cvmfstest.File {
	big := noise(3<<20+17, 7)
	return map[string]cvmfstest.File{
		"plain.txt":           {Content: []byte("hello\n"), Time: time.Unix(1_234_567_890, 123)},
		"empty":               {},
		"dir/rmd160":          {Content: []byte("ripe"), Hash: "rmd160"},
		"dir/shake128":        {Content: []byte("shaken"), Hash: "shake128"},
		"dir/stored":          {Content: []byte("not compressed"), Plain: true},
		"dir/zeros":           {Content: make([]byte, 1<<20)},
		"dir/tool":            {Content: []byte("#!/bin/sh\n"), Mode: 0o755},
		"dir/same":            {Content: []byte("hello\n")},
		"dir/h1":              {Content: []byte("linked"), Group: 1, Links: 2},
		"dir/h2":              {Content: []byte("linked"), Group: 1, Links: 2},
		"chunked":             {Content: big, Chunks: []int{1 << 20}},
		"uneven":              {Content: big, Chunks: []int{1, 100, 1 << 20}, Hash: "shake128", Plain: true},
		"link":                {Link: "dir/tool"},
		"arch":                {Link: "/opt/$(ARCH)/$(OS:-linux)/x$(NONE)"},
		"none":                {Dir: true},
		"nested":              {Nested: true},
		"nested/a":            {Content: []byte("a")},
		"nested/deeper":       {Nested: true, Mode: 0o700},
		"nested/deeper/b":     {Content: []byte("b"), Mode: 0o600},
		"nested/deeper/c/d":   {Content: []byte("d")},
		"nested/näme %20 $(x": {Content: []byte("odd name")},
		".cvmfs":              {Dir: true, Flags: 0x8000},
		".cvmfs/secret":       {Content: []byte("hidden")},
	}
}

func TestEveryKindOfEntry(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		schema int
		alt    bool
	}{{"newest", 7, false}, {"as of 2014", 1, false}, {"without revision", 0, true}} {
		t.Run(c.name, func(t *testing.T) {
			files := variety()
			p := publish(t, files, func(p *cvmfstest.Publisher) { p.Schema, p.Alt = c.schema, c.alt })
			r := p.open(t)
			got, err := readAll(t.Context(), r, 4)
			if err != nil {
				t.Fatal(err)
			}
			want := hashes(files)
			delete(want, "/.cvmfs/secret") // a walk does not come there
			if !maps.Equal(got, want) {
				t.Errorf("got %v\nwant %v", got, want)
			}
			if n, most := objects(p.web.taken()); most != 1 {
				t.Errorf("of %d objects some were fetched %d times", n, most)
			}
			hidden, err := r.lookup(t.Context(), r.root, ".cvmfs")
			if err != nil || !hidden.isDir() {
				t.Errorf("the hidden directory: %+v, %v", hidden, err)
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	p := publish(t, variety())
	r := p.open(t)
	at := func(path ...string) *entry { return lookupFrom(t, r, r.root, path...) }
	if e := at("plain.txt"); !e.mtime.Equal(time.Unix(1_234_567_890, 123)) || e.mode != 0o100644 || e.size != 6 {
		t.Errorf("plain.txt: %+v", e)
	}
	h1, h2 := at("dir", "h1"), at("dir", "h2")
	if inode("/dir/h1", "", h1) != inode("/dir/h2", "", h2) || h1.links != 2 {
		t.Errorf("hard links: %+v, %+v", h1, h2)
	}
	if inode("/dir/same", "", at("dir", "same")) == inode("/plain.txt", "", at("plain.txt")) {
		t.Error("two files have one inode")
	}
	if e := at("nested", "deeper", "b"); e.mode != 0o100600 {
		t.Errorf("nested/deeper/b: %+v", e)
	}
	if _, err := r.lookup(t.Context(), r.root, "nowhere"); err != errNoEntry {
		t.Errorf("a name that is not there: %v", err)
	}
}

// lookupFrom goes down from the directory s.
func lookupFrom(t *testing.T, r *Repository, s spot, path ...string) *entry {
	t.Helper()
	s, err := r.tree.enter(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	e, err := r.lookup(t.Context(), s, path[0])
	if err != nil {
		t.Fatal(path, err)
	}
	if len(path) == 1 {
		return e
	}
	return lookupFrom(t, r, s.below(e), path[1:]...)
}

// TestBindMount shows an old revision in a directory of a new one, as the snapshots
// of a repository are shown: its paths begin elsewhere.
func TestBindMount(t *testing.T) {
	t.Parallel()
	files := map[string]cvmfstest.File{
		"old":        {Content: []byte("first")},
		"sub":        {Nested: true},
		"sub/deeper": {Content: []byte("nested first")},
		"big":        {Content: noise(200_000, 3), Chunks: []int{70_000}},
	}
	p := publish(t, files)
	newer := map[string]cvmfstest.File{
		"old":         {Content: []byte("second")},
		"snap/before": {Bind: p.Root},
	}
	if err := p.Publish(newer); err != nil {
		t.Fatal(err)
	}
	got, err := readAll(t.Context(), p.open(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	want := hashes(newer)
	for path, sum := range hashes(files) {
		want["/snap/before"+path] = sum
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

func TestExpand(t *testing.T) {
	value := map[string]string{"A": "one", "E": "", "L/1": "slash"}
	for in, want := range map[string]string{
		"":                  "",
		"plain":             "plain",
		"$(A)":              "one",
		"/x/$(A)/$(B:-two)": "/x/one/two",
		"$(B)$(E:-no)":      "",
		"$(B:-/a:-b)":       "/a:-b",
		"$(A":               "$(A",
		"$A $()":            "$A ",
		"$(L/1)$(A)$(A)":    "slashoneone",
		"a)$(A)b)":          "a)oneb)",
	} {
		if got := expand(in, value); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestChunksReadAnywhere(t *testing.T) {
	t.Parallel()
	content := noise(2_500_000, 9)
	p := publish(t, map[string]cvmfstest.File{"f": {Content: content, Chunks: []int{300_000}}})
	r := p.open(t)
	e := lookupFrom(t, r, r.root, "f")
	n := &node{repo: r, spot: r.root.below(e), entry: e}
	p.web.taken()
	h, err := n.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := h.(*chunkedFile)
	defer f.Release(t.Context())
	for _, c := range []struct{ off, size int }{{1_000_000, 10}, {299_990, 20}, {2_499_990, 100}, {0, 1}, {2_500_000, 5}} {
		res, errno := f.Read(t.Context(), make([]byte, c.size), int64(c.off))
		if errno != 0 {
			t.Fatal(errno)
		}
		got, _ := res.Bytes(nil)
		if want := content[c.off:min(c.off+c.size, len(content))]; !bytes.Equal(got, want) {
			t.Errorf("at %d: got %d bytes, which differ from the %d wanted", c.off, len(got), len(want))
		}
	}
	// Chunks 3, 0, 1 and 8: nothing else is needed for that.
	if n, most := objects(p.web.taken()); n != 4 || most != 1 {
		t.Errorf("%d objects were fetched, one %d times", n, most)
	}
}
