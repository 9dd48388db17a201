package installer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

// stamp is the time of members that the tests make.
var stamp = time.Unix(1234567890, 123456789)

// member is a tar member as the tests write it.
type member struct {
	name string
	kind byte   // 0 for a regular file
	mode int64  // 0 for 0755 (directories) or 0644
	link string // target
	body string
	pax  map[string]string
}

// tarball makes a tar archive.
func tarball(t testing.TB, members ...member) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, m := range members {
		h := &tar.Header{
			Name: m.name, Typeflag: m.kind, Mode: m.mode, Linkname: m.link,
			Size: int64(len(m.body)), ModTime: stamp, PAXRecords: m.pax, Format: tar.FormatPAX,
		}
		switch m.kind {
		case 0:
			h.Typeflag = tar.TypeReg
		case tar.TypeChar:
			h.Devmajor, h.Devminor = 1, 3
		case tar.TypeBlock:
			h.Devmajor, h.Devminor = 7, 0
		case tar.TypeXGlobalHeader:
			h = &tar.Header{Typeflag: m.kind, PAXRecords: m.pax}
		}
		if h.Mode == 0 && m.kind != tar.TypeXGlobalHeader {
			h.Mode = 0o644
			if m.kind == tar.TypeDir {
				h.Mode = 0o755
			}
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatalf("%q: %v", m.name, err)
		}
		if _, err := io.WriteString(w, m.body); err != nil {
			t.Fatalf("%q: %v", m.name, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstded(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// compress compresses by a program of the system, or as it is for "tar".
func compress(t testing.TB, format string, data []byte, args ...string) []byte {
	t.Helper()
	program := map[string]string{"gz": "gzip", "xz": "xz", "zst": "zstd", "bz2": "bzip2"}[format]
	if program == "" {
		return data
	}
	needPeer(t, program)
	cmd := exec.Command(program, append([]string{"-c"}, args...)...)
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", program, err)
	}
	return out
}

// extract unpacks archive into a new directory.
func extract(t testing.TB, archive []byte, opts UnpackOptions) (dir string, sum Summary, err error) {
	t.Helper()
	dir = tempDir(t)
	sum, err = Unpack(context.Background(), bytes.NewReader(archive), dir, opts)
	return dir, sum, err
}

// tempDir is t.TempDir for directories without write permission.
func tempDir(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		if err := RemoveTree(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// snapshot describes everything below dir, the directory itself included: type,
// mode, time, size, links and content, a line for each name.
func snapshot(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	first := map[uint64]string{} // name of each inode with several links
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := os.Lstat(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		sys := st.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&out, "%q %v %d.%09d", name, st.Mode(), sys.Mtim.Sec, sys.Mtim.Nsec)
		switch {
		case st.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " %d %x", len(data), sha256.Sum256(data))
			if sys.Nlink > 1 {
				if first[sys.Ino] == "" {
					first[sys.Ino] = name
				}
				fmt.Fprintf(&out, " =%q(%d)", first[sys.Ino], sys.Nlink)
			}
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, " -> %q", target)
		}
		out.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// listing is the names below dir.
func listing(t testing.TB, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && path != dir {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
