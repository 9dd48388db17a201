package installer

import (
	"archive/tar"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// unprotected reads an archive as an extractor would that trusts it: every window
// and every size is granted.
func unprotected(t *testing.T, archive []byte) io.Reader {
	t.Helper()
	in := bytes.NewReader(archive)
	var out io.Reader
	var err error
	switch {
	case bytes.HasPrefix(archive, []byte("\x1f\x8b")):
		out, err = gzip.NewReader(in)
	case bytes.HasPrefix(archive, []byte("BZh")):
		out = bzip2.NewReader(in)
	case bytes.HasPrefix(archive, []byte("\xfd7zXZ")):
		out, err = xz.NewReader(in)
	case bytes.HasPrefix(archive, []byte("\x28\xb5\x2f\xfd")):
		var d *zstd.Decoder
		d, err = zstd.NewReader(in, zstd.WithDecoderMaxWindow(1<<31), zstd.WithDecoderMaxMemory(1<<40), zstd.WithDecoderConcurrency(1))
		if err == nil {
			t.Cleanup(d.Close)
			out = d
		}
	default:
		return in
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBombsGoOffWithoutTheDefence proves that those of bombs that swell, or want a
// window, do so in an extractor without limits: it writes hundreds of times what the
// archive has, and would go on.
func TestBombsGoOffWithoutTheDefence(t *testing.T) {
	seen := 0
	for _, b := range bombs() {
		swells := strings.HasSuffix(b.name, "ratio") || b.name == "sparse file of 1 EiB"
		if !swells && !strings.HasPrefix(b.name, "zstd --long") {
			continue
		}
		seen++
		t.Run(b.name, func(t *testing.T) {
			archive := b.archive(t)
			members := tar.NewReader(unprotected(t, archive))
			h, err := members.Next()
			if err != nil {
				t.Fatalf("the unprotected extractor refuses it too: %v", err)
			}
			n, err := io.CopyN(io.Discard, members, min(h.Size, 64<<20))
			if err != nil {
				t.Fatal(err)
			}
			if swells && n < 250*int64(len(archive)) {
				t.Errorf("%d bytes become only %d", len(archive), n)
			}
		})
	}
	if seen != 7 {
		t.Errorf("%d bombs were tried", seen)
	}
}
