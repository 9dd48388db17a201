package installer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// packTree makes a directory with everything that can be packed.
func packTree(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "soft")
	writeFile(t, dir+"/bin/run", "#!/bin/sh\necho hello\n")
	writeFile(t, dir+"/lib/big", strings.Repeat("0123456789abcdef", 1<<16)+"end")
	writeFile(t, dir+"/lib/empty", "")
	writeFile(t, dir+"/a \xff\nb/"+strings.Repeat("long", 40), "odd names")
	writeSparse(t, dir+"/lib/sparse", 3<<20, map[int64]string{1 << 20: "data"})
	err := errors.Join(
		os.Chmod(dir+"/bin/run", 0o755|os.ModeSetuid),
		os.Symlink("../lib/big", dir+"/bin/big"),
		os.Symlink("../bin/../lib", dir+"/bin/odd"),
		os.Link(dir+"/lib/big", dir+"/lib/hard"),
		os.Mkdir(dir+"/none", 0o700),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var packExtensions = []string{".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".tgz"}

// TestPackRoundTrip: what is packed comes out again, by Unpack and by GNU tar.
func TestPackRoundTrip(t *testing.T) {
	dir := packTree(t)
	want := withoutFractions(strings.Replace(snapshot(t, dir), "urwxr-xr-x", "-rwxr-xr-x", 1)) // no set-user-ID bit
	for _, ext := range packExtensions {
		t.Run(ext, func(t *testing.T) {
			out := t.TempDir()
			var last int64
			got, err := Pack(t.Context(), dir, out+"/soft-1.0"+ext, PackOptions{
				KeepTimes: true, Progress: func(done, total int64) { last = done - total },
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.Files != 5 || got.Hardlinks != 1 || got.Symlinks != 2 || got.Dirs != 5 || last != 0 {
				t.Errorf("%+v, progress %d", got, last)
			}
			if _, err := UnpackTo(t.Context(), got.Path, out+"/ours", UnpackOptions{}); err != nil {
				t.Fatal(err)
			}
			compareTrees(t, out+"/ours/soft", want, true)
			needPeer(t, "tar", "xz", "zstd", "gzip", "sha256sum")
			if err := os.Mkdir(out+"/gnu", 0o755); err != nil {
				t.Fatal(err)
			}
			run(t, out+"/gnu", "tar", "xf", got.Path)
			compareTrees(t, out+"/gnu/soft", want, true)
			run(t, out, "sha256sum", "--check", "--strict", SumsFile)
			if v, err := Verify(t.Context(), got.Path, VerifyOptions{}); err != nil || !v.Sums || v.Signed || v.SHA256 != got.SHA256 {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
}

// TestPackIsReproducible: a copy with other owners, times and order of making has
// the same archive, with one processor or several.
func TestPackIsReproducible(t *testing.T) {
	dir := packTree(t)
	copied := filepath.Join(t.TempDir(), "soft")
	needPeer(t, "cp")
	run(t, ".", "cp", "-r", "--preserve=mode,links", dir, copied)
	err := errors.Join(os.Chtimes(copied+"/lib/big", stamp, stamp), os.Chtimes(copied, stamp, stamp))
	if os.Geteuid() == 0 {
		err = errors.Join(err, os.Chown(copied+"/lib/empty", nobody, nobody))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, ext := range packExtensions {
		t.Run(ext, func(t *testing.T) {
			out := t.TempDir()
			a, err := Pack(t.Context(), dir, out+"/a"+ext, PackOptions{})
			if err != nil {
				t.Fatal(err)
			}
			b, err := Pack(t.Context(), copied, out+"/b"+ext, PackOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c, err := Pack(t.Context(), dir, out+"/c"+ext, PackOptions{Time: time.Unix(1, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if a.SHA256 != b.SHA256 || a.SHA256 == c.SHA256 {
				t.Errorf("%s\n%s\n%s", a.SHA256, b.SHA256, c.SHA256)
			}
		})
	}
}

// TestFramesDoNotDependOnProcessors compares what several and one make.
func TestFramesDoNotDependOnProcessors(t *testing.T) {
	data := bytes.Repeat([]byte("some text that repeats, "), frameSize/12) // two frames
	for _, ext := range []string{".tar.gz", ".tar.zst"} {
		var out [2]bytes.Buffer
		for i := range out {
			w, err := newCompressor(&out[i], ext)
			if err != nil {
				t.Fatal(err)
			}
			for piece := data; len(piece) > 0; { // of different sizes
				n := min(len(piece), 1<<20+i)
				if _, err := w.Write(piece[:n]); err != nil {
					t.Fatal(err)
				}
				piece = piece[n:]
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(out[0].Bytes(), out[1].Bytes()) {
			t.Errorf("%s: two results", ext)
		}
	}
}

func TestPackRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) error
		dest string // below the source's parent
		opts PackOptions
		want string
	}{
		{"absolute link", func(d string) error { return os.Symlink("/etc/passwd", d+"/l") }, "a.tar", PackOptions{}, "absolute"},
		{"link outside", func(d string) error { return os.Symlink("../x", d+"/l") }, "a.tar", PackOptions{}, "outside"},
		{"link through a link", func(d string) error {
			return errors.Join(os.Symlink("sub", d+"/s"), os.Symlink("s/../f", d+"/l"))
		}, "a.tar", PackOptions{}, "does not follow a directory"},
		{"FIFO", func(d string) error { return unix.Mkfifo(d+"/p", 0o600) }, "a.tar", PackOptions{}, "neither a file"},
		{"within itself", nil, "soft/sub/a.tar.gz", PackOptions{}, "within the directory itself"},
		{"extension", nil, "a.zip", PackOptions{}, "none of .tar"},
		{"missing directory", nil, "nosuch/a.tar", PackOptions{}, "no such file"},
		{"top", nil, "a.tar", PackOptions{Top: "../x"}, "top directory"},
		{"signed sums", func(d string) error { return os.WriteFile(d+"/../"+SignatureFile, nil, 0o644) }, "a.tar", PackOptions{}, "signed"},
		{"broken sums", func(d string) error { return os.WriteFile(d+"/../"+SumsFile, []byte("junk\n"), 0o644) }, "a.tar", PackOptions{}, "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			base := t.TempDir()
			dir := base + "/soft"
			writeFile(t, dir+"/sub/f", "x")
			if c.make != nil {
				if err := c.make(dir); err != nil {
					t.Fatal(err)
				}
			}
			before := listing(t, base)
			_, err := Pack(t.Context(), dir, base+"/"+c.dest, c.opts)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			if after := listing(t, base); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("before %q, after %q", before, after)
			}
		})
	}
}

// TestPackSeesChanges: a file or directory that changes under our hands is an
// error, and no archive is left.
func TestPackSeesChanges(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"grows":   func(d string) error { return os.WriteFile(d+"/f", make([]byte, 3<<20), 0o644) },
		"shrinks": func(d string) error { return os.Truncate(d+"/f", 1<<20) },
		"touched": func(d string) error { return os.Chtimes(d+"/f", time.Time{}, time.Now().Add(time.Hour)) },
		"new name": func(d string) error {
			return errors.Join(os.WriteFile(d+"/g", nil, 0o644), os.Chtimes(d, stamp, stamp))
		},
		"removed": func(d string) error { return os.Remove(d + "/z") },
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			dir := base + "/soft"
			writeFile(t, dir+"/f", strings.Repeat("x", 2<<20))
			writeFile(t, dir+"/z", "")
			done := false
			_, err := Pack(t.Context(), dir, base+"/a.tar.zst", PackOptions{Progress: func(int64, int64) {
				if !done {
					done = true
					if err := change(dir); err != nil {
						t.Error(err)
					}
				}
			}})
			if !errors.Is(err, errChanged) {
				t.Errorf("error %v", err)
			}
			if got := strings.Join(listing(t, base), " "); strings.Contains(got, "a.tar") {
				t.Errorf("left %s", got)
			}
		})
	}
}

func TestPackEnds(t *testing.T) {
	dir := packTree(t)
	out := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	_, err := Pack(ctx, dir, out+"/a.tar.xz", PackOptions{Progress: func(int64, int64) { cancel(why) }})
	if !errors.Is(err, why) || len(listing(t, out)) != 0 {
		t.Errorf("error %v, left %q", err, listing(t, out))
	}
	disk := smallDisk(t)
	writeFile(t, disk+"/old", strings.Repeat("x", 1000_000))
	for _, ext := range packExtensions {
		if _, err = Pack(t.Context(), dir, disk+"/a"+ext, PackOptions{}); !errors.Is(err, syscall.ENOSPC) {
			// A megabyte that repeats fits when it is compressed.
			if ext == ".tar" || err != nil {
				t.Errorf("%s on a full disk: %v", ext, err)
			}
		}
	}
	if got := listing(t, disk); strings.Contains(strings.Join(got, " "), ".part") {
		t.Errorf("left %q", got)
	}
}
