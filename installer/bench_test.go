package installer

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// benchTree is an archive of 10,000 files in 500 directories, of 80 MB: like an
// installed application, most files small, the content compressible.
func benchTree(b *testing.B) []byte {
	b.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	var words [512]string
	for i := range words {
		words[i] = fmt.Sprintf("%x ", rnd.Uint32()>>(rnd.UintN(24)))
	}
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := range 10_000 {
		dir := fmt.Sprintf("app-1.0/lib/pkg%02d/mod%02d/", i/200, i/20%10)
		if i%20 == 0 {
			w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755, ModTime: stamp})
		}
		size := 500 + rnd.IntN(6000)
		if i%100 == 0 {
			size = 300_000 + rnd.IntN(400_000)
		}
		var body bytes.Buffer
		for body.Len() < size {
			body.WriteString(words[rnd.IntN(len(words))])
		}
		w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%sfile%05d.py", dir, i), Typeflag: tar.TypeReg,
			Mode: 0o644, ModTime: stamp, Size: int64(body.Len())})
		w.Write(body.Bytes())
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

// BenchmarkUnpack unpacks the tree; each format's "gnu" is GNU tar with the
// system's decompressor on the same archive.
func BenchmarkUnpack(b *testing.B) {
	plain := benchTree(b)
	dir := benchDir(b)
	for _, format := range []string{"tar", "gz", "zst", "bz2", "xz"} {
		b.Run(format, func(b *testing.B) {
			archive := filepath.Join(dir, "tree."+format)
			if err := os.WriteFile(archive, compress(b, format, plain), 0o644); err != nil {
				b.Fatal(err)
			}
			benchArchive(b, dir, archive, len(plain))
		})
	}
}

func benchArchive(b *testing.B, dir, archive string, size int) {
	b.Run("ours", func(b *testing.B) {
		benchEach(b, dir, size, func(dest string) {
			if _, err := UnpackFile(context.Background(), archive, dest, UnpackOptions{}); err != nil {
				b.Fatal(err)
			}
		})
	})
	b.Run("gnu", func(b *testing.B) {
		needPeer(b, "tar")
		benchEach(b, dir, size, func(dest string) {
			run(b, dest, "tar", "--no-same-owner", "-xf", archive)
		})
	})
}

// benchDir is in memory where it can be, so that disks do not blur the picture.
func benchDir(b *testing.B) string {
	b.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "installer")
	if err != nil {
		return b.TempDir()
	}
	b.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func benchEach(b *testing.B, dir string, size int, unpack func(dest string)) {
	b.SetBytes(int64(size))
	for b.Loop() {
		b.StopTimer()
		dest, err := os.MkdirTemp(dir, "dest")
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		unpack(dest)
		b.StopTimer()
		if err := os.RemoveAll(dest); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
