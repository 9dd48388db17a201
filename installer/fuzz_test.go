package installer

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzUnpack: whatever the bytes, nothing outside is touched, nothing inside leads
// or is worse than a plain file, directory or link, and the same bytes give the
// same tree again.
func FuzzUnpack(f *testing.F) {
	for _, seed := range fuzzSeeds(f) {
		f.Add(seed, byte(0))
		f.Add(seed, byte(1))
	}
	limits := Limits{Bytes: 1 << 20, FileBytes: 1 << 20, Entries: 200, Ratio: 100, RatioFrom: 1 << 20}
	f.Fuzz(func(t *testing.T, archive []byte, strip byte) {
		base := tempDir(t)
		dest, outside := base+"/dest", base+"/outside"
		if err := os.Mkdir(dest, 0o755); err != nil {
			t.Fatal(err)
		}
		writeFile(t, outside+"/secret", "secret")
		before := snapshot(t, outside)
		opts := UnpackOptions{Limits: limits, StripComponents: int(strip % 4)}
		_, err := Unpack(context.Background(), bytes.NewReader(archive), dest, opts)
		checkInside(t, base, dest)
		if err == nil {
			first := snapshot(t, dest)
			if _, err := Unpack(context.Background(), bytes.NewReader(archive), dest, opts); err != nil {
				t.Fatalf("the second time: %v", err)
			}
			_, first, _ = strings.Cut(first, "\n")
			if _, second, _ := strings.Cut(snapshot(t, dest), "\n"); impliedTimes(first) != impliedTimes(second) {
				t.Fatalf("the second time gives\n%s, the first\n%s", second, first)
			}
		}
		if after := snapshot(t, outside); after != before {
			t.Fatalf("outside is\n%s", after)
		}
		if got := len(listing(t, base)) - len(listing(t, dest)); got != 3 {
			t.Fatalf("%d things beside the destination", got)
		}
	})
}

// impliedTimes drops the lines of directories: those that no member names have
// the time of their making.
func impliedTimes(snapshot string) string {
	var kept []string
	for _, l := range strings.Split(snapshot, "\n") {
		if !strings.Contains(l, `" d`) {
			kept = append(kept, l)
		}
	}
	return strings.Join(kept, "\n")
}

// checkInside fails the test for anything in dest that Unpack must not make.
func checkInside(t *testing.T, base, dest string) {
	t.Helper()
	for _, name := range listing(t, dest) {
		path := filepath.Join(dest, name)
		st, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		switch m := st.Mode(); {
		case m&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0:
			t.Fatalf("%q has mode %v", name, m)
		case m.IsDir(), m.IsRegular():
		case m&fs.ModeSymlink != 0:
			if to, err := filepath.EvalSymlinks(path); err == nil && to != dest && !strings.HasPrefix(to, dest+"/") {
				t.Fatalf("%q leads to %s", name, to)
			}
		default:
			t.Fatalf("%q has mode %v", name, m)
		}
	}
}

// fuzzSeeds are the hostile archives and ordinary ones, in each compression that
// can be made without another program.
func fuzzSeeds(f *testing.F) [][]byte {
	f.Helper()
	const dir, sym, hard = '5', '2', '1'
	var seeds [][]byte
	for _, a := range attacks() {
		for _, members := range a.archives(scene{"/tmp", "/tmp/dest", "/tmp/outside"}) {
			seeds = append(seeds, tarball(f, members...))
		}
	}
	plain := tarball(f, member{name: "g", kind: 'g', pax: map[string]string{"comment": "c"}},
		member{name: "a/", kind: dir, mode: 0o500}, member{name: "a/f", mode: 0o4777, body: "content"},
		member{name: "a/l", kind: sym, link: "../a/f"}, member{name: "a/h", kind: hard, link: "a/f"},
		member{name: strings.Repeat("long/", 50) + "x", body: "x", pax: map[string]string{"SCHILY.xattr.user.x": "y"}})
	gnuLong := join(rawMember("././@LongLink", 'L', []byte(strings.Repeat("n", 300)+"\x00")), rawMember("n", '0', []byte("x")), endMark)
	xz, err := os.ReadFile("testdata/small.tar.xz")
	if err != nil {
		f.Fatal(err)
	}
	bz2, err := os.ReadFile("testdata/small.tar.bz2")
	if err != nil {
		f.Fatal(err)
	}
	return append(seeds, plain, gzipped(f, plain), zstded(f, plain), xz, bz2, gnuLong,
		sparseV1(9000, 3, "abc"), zstdWithWindow(plain[:1024], 20), join(gzipped(f, plain[:600]), gzipped(f, plain[600:])),
		join(plain, plain, make([]byte, 700)), join(zstded(f, plain), []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00skip")))
}
