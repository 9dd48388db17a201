package installer

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"
)

// TestMemory unpacks what needs most memory among what is accepted, each in a
// process of its own.
func TestMemory(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector takes memory of its own")
	}
	zeros := func(n int) []byte {
		return tarball(t, member{name: "zeros", body: strings.Repeat("\x00", n)})
	}
	dir := t.TempDir()
	for name, archive := range map[string][]byte{
		"zstd with a window of 128 MiB":   compress(t, "zst", zeros(140<<20), "--long=27"),
		"xz with a dictionary of 64 MiB":  compress(t, "xz", zeros(66<<20), "--lzma2=preset=0,dict=64MiB"),
		"xz with many dictionaries":       compress(t, "xz", zeros(12<<20), "-T1", "--lzma2=preset=0,dict=64MiB", "--block-size=2097152"),
		"a sparse map of 100,000 entries": sparseV1(200_000, 100_000, strings.Repeat("x", 100_000)),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, "archive")
			if err := os.WriteFile(path, archive, 0o644); err != nil {
				t.Fatal(err)
			}
			res := runChild(t, "", childTask{Unpack: path, To: t.TempDir(), Times: 1})
			if res.Err != "" {
				t.Fatal(res.Err)
			}
			if res.Peak < 1<<20 || res.Peak > 256<<20 {
				t.Errorf("%d MiB", res.Peak>>20)
			}
			t.Logf("%d MiB", res.Peak>>20)
		})
	}
}

// TestDictionaryBombWorks: the library's own reader of xz files allocates what the
// file asks for.
func TestDictionaryBombWorks(t *testing.T) {
	archive := xzWithDictionary(t, compress(t, "xz", tarball(t, member{name: "a"})), 29)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := xz.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if after.TotalAlloc-before.TotalAlloc < 96<<20 {
		t.Errorf("it took %d bytes only", after.TotalAlloc-before.TotalAlloc)
	}
}
