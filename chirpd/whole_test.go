package chirpd_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/chirptest"
)

// TestPutfileWhole checks that an old file stays whole until the new one is.
func TestPutfileWhole(t *testing.T) {
	s := serve(t)
	s.write("f", "the old content")
	if err := os.Chmod(s.path("f"), 0o640); err != nil {
		t.Fatal(err)
	}
	vanish := s.as("owner")
	vanish.want("0", "putfile /f 511 100000")
	vanish.send("the new")
	p := s.as("owner")
	p.want("15", "getfile /f")
	p.bytes(15)
	vanish.Close()
	for { // until the server has seen it leave
		if strings.Contains(s.log.String(), "connection ended") {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := s.read("f"); got != "the old content" {
		t.Errorf("a client that vanished left %q", got)
	}
	names, err := os.ReadDir(s.root)
	if err != nil || len(names) != 1 {
		t.Errorf("the directory has %v (%v)", names, err)
	}

	p.want("0", "putfile /f 511 3")
	p.send("new")
	if got := p.line(); got != "3" {
		t.Fatalf("got %s", got)
	}
	info, err := os.Stat(s.path("f"))
	if err != nil || info.Mode() != 0o640 || s.read("f") != "new" {
		t.Errorf("the file has mode %v and %q (%v)", info.Mode(), s.read("f"), err)
	}
}

// TestPutfileInPlace keeps a file that has two names one file, and follows a link.
func TestPutfileInPlace(t *testing.T) {
	s := serve(t)
	s.write("a", "the old content")
	if err := os.Link(s.path("a"), s.path("b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", s.path("l")); err != nil {
		t.Fatal(err)
	}
	p := s.as("owner")
	p.want("0", "putfile /l 420 3")
	p.send("new")
	if got := p.line(); got != "3" || s.read("a") != "new" || s.read("b") != "new" {
		t.Errorf("answered %s; a has %q, b has %q", got, s.read("a"), s.read("b"))
	}
	if target, err := os.Readlink(s.path("l")); err != nil || target != "a" {
		t.Errorf("the link leads to %q (%v)", target, err)
	}
}

// TestShrinkingFile drops the connection when a file lost what was promised of it; no
// padding follows.
func TestShrinkingFile(t *testing.T) {
	const size = 16 << 20 // more than the sockets hold
	s := serve(t)
	for name, request := range map[string]string{
		"getfile":   "getfile /f",
		"getstream": "getstream /f",
		"pread":     fmt.Sprintf("pread 0 %d 0", size),
		"sread":     fmt.Sprintf("sread 0 %d 1000 1000 0", size),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(s.path("f"), bytes.Repeat([]byte("x"), size), 0o644); err != nil {
				t.Fatal(err)
			}
			p := s.as("owner")
			p.ask("open /f r 0")
			p.line()
			if got := p.ask("%s", request); got != fmt.Sprint(size) && name != "getstream" {
				t.Fatalf("promised %s bytes", got)
			}
			time.Sleep(20 * time.Millisecond) // the server fills the sockets and waits
			if err := os.Truncate(s.path("f"), 0); err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(p.in)
			if len(got) >= size {
				t.Errorf("all %d bytes came, so nothing was cut short", len(got))
			}
			if wrong := len(got) - bytes.Count(got, []byte("x")); wrong != 0 {
				t.Errorf("%d bytes that are not the file's came", wrong)
			}
			s.as("owner").want("0", "stat /f")
		})
	}
}

// TestGrowingFile sends what was there when it was asked for.
func TestGrowingFile(t *testing.T) {
	s := serve(t)
	s.write("f", "12345")
	f, err := os.OpenFile(s.path("f"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := s.as("owner")
	p.ask("open /f r 0")
	p.line()
	p.want("5", "pread 0 100 0")
	p.bytes(5)
	f.WriteString("678")
	p.want("3", "pread 0 100 5")
	if got := p.bytes(3); got != "678" {
		t.Errorf("read %q", got)
	}
	p.want("8", "getfile /f")
	p.bytes(8)
}

// TestFullDisk fills a small file system: writes, whole files and new names say so.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		chirptest.Missing(t, fmt.Sprintf("cannot mount a tmpfs: %v", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	s := serve(t, func(c *chirpd.Config) { c.Root = dir })
	p := s.as("owner")
	p.want("0", "open /f wc 420")
	p.line()
	block := strings.Repeat("x", 300<<10)
	written := 0
	for reply := ""; reply != "-6"; {
		p.send(fmt.Sprintf("pwrite 0 %d %d\n%s", len(block), written, block))
		reply = p.line()
		var n int
		if fmt.Sscan(reply, &n); n > 0 {
			written += n
		}
		if written > 1<<20 {
			t.Fatalf("%d bytes were written to a disk of 1 MiB", written)
		}
	}
	p.want("0", "fstat 0")
	if st := strings.Fields(p.line()); st[7] != fmt.Sprint(written) {
		t.Errorf("%d bytes were acknowledged, the file has %s", written, st[7])
	}
	p.want("0", "putfile /g 420 %d", len(block))
	p.send(block)
	if got := p.line(); got != "-6" {
		t.Errorf("putfile on a full disk was answered %s", got)
	}
	if names, _ := filepath.Glob(dir + "/*"); len(names) != 1 {
		t.Errorf("the disk has %v", names)
	}
	p.want("0", "close 0")
	p.want("0", "unlink /f")
	p.want("0", "putfile /g 420 %d", len(block))
	p.send(block)
	if got := p.line(); got != fmt.Sprint(len(block)) {
		t.Errorf("putfile was answered %s", got)
	}
}

// TestAppenders has two clients append blocks to one file at once: none is lost or torn.
func TestAppenders(t *testing.T) {
	s := serve(t)
	const clients, blocks, size = 4, 20, 100_000
	done := make(chan bool)
	for i := range clients {
		p := s.as("owner")
		go func() {
			defer func() { done <- true }()
			p.ask("open /log wac 420")
			p.line()
			for range blocks {
				p.send(fmt.Sprintf("pwrite 0 %d 0\n%s", size, strings.Repeat(string(rune('a'+i)), size)))
				if got := p.line(); got != fmt.Sprint(size) {
					t.Errorf("answered %s", got)
				}
			}
		}()
	}
	for range clients {
		<-done
	}
	text := s.read("log")
	if len(text) != clients*blocks*size {
		t.Fatalf("%d bytes of %d are there", len(text), clients*blocks*size)
	}
	for i := 0; i < len(text); i += size {
		if block := text[i : i+size]; strings.Count(block, block[:1]) != size {
			t.Fatalf("block %d is torn", i/size)
		}
	}
}
