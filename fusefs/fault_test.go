package fusefs

import (
	"bytes"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// patience is a setting: how long a call waits for a server that is away.
func patience(d time.Duration) setting {
	return func(o *client.Options, _ *Options, _ *MountOptions) { o.Timeout = d }
}

// TestServerRestarts is case 25: what is being read and written goes on when the
// server, killed in the middle, comes back.
func TestServerRestarts(t *testing.T) {
	p := chirptest.Server(t)
	m := mounted(t, p, p.Addr)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	if err := os.WriteFile(m.remote("big"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(m.path("big"))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(m.path("copy"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	sum := md5.New()
	var started sync.WaitGroup
	for i := 0; ; i++ {
		if i == 5 || i == 9 {
			started.Wait()
			p.Stop()
			started.Go(func() {
				time.Sleep(200 * time.Millisecond)
				p.Start()
				if c, err := net.Dial("tcp", p.Addr); err == nil { // it serves by now
					c.Close()
				}
			})
		}
		n, err := io.CopyN(io.MultiWriter(out, sum), in, 1<<20)
		if err == io.EOF && n == 0 {
			break
		} else if err != nil && err != io.EOF {
			t.Fatalf("after %d MiB: %v", i, err)
		}
	}
	started.Wait()
	if err := out.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if got, want := fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", md5.Sum(data)); got != want {
		t.Errorf("what was read has the sum %s, want %s", got, want)
	}
	if got, err := os.ReadFile(m.remote("copy")); err != nil || !bytes.Equal(got, data) {
		t.Errorf("what was written is not what the server has (%d bytes, %v)", len(got), err)
	}
}

// TestServerGone is case 33: a server that is gone after the last write is an error of
// every close, of descriptors that dup and fork made too, and of every later fsync.
func TestServerGone(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(300*time.Millisecond))
	cmd := helper(t, "closes", m.path("f"))
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Pause() // what is written now does not get there
	fmt.Fprintln(in, "write")
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Refuse()
	r.Cut()
	fmt.Fprintln(in, "close")
	said, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	if err := m.end(); err != nil {
		t.Errorf("end of the mount: %v; the application knows what was lost", err)
	}
}

// closeTwice writes to a file when it is told, and closes it in each way there is when
// it is told that: all must fail.
func closeTwice(args []string) error {
	var line [16]byte
	fd, err := unix.Open(args[0], unix.O_WRONLY|unix.O_CREAT, 0o644)
	if err != nil {
		return err
	}
	twin, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	fmt.Println("open")
	_, _ = os.Stdin.Read(line[:])
	if _, err := unix.Write(fd, []byte("lost")); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	fmt.Println("written")
	_, _ = os.Stdin.Read(line[:])
	child := exec.Command("true") // what it inherits is closed by its end
	child.ExtraFiles = []*os.File{os.NewFile(uintptr(twin), "twin")}
	if err := child.Run(); err != nil {
		return err
	}
	if err := unix.Close(fd); err == nil {
		return errors.New("close succeeded")
	}
	for range 2 {
		if err := unix.Fsync(twin); err == nil {
			return errors.New("fsync pretended")
		}
	}
	if err := unix.Close(twin); err == nil {
		return errors.New("close of the other descriptor succeeded")
	}
	return nil
}

// TestLostBehind checks that the end of the mount tells of data that was lost and that
// no close could tell of: shared memory that was written after the last close.
func TestLostBehind(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(300*time.Millisecond))
	write(t, m.path("f"), string(make([]byte, 100_000)))
	cmd := helper(t, "mapped", m.path("f"), "closed", "lost")
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r.Refuse()
	r.Cut()
	fmt.Fprintln(in)
	_ = cmd.Wait() // it may or may not be told
	if err := m.end(); err == nil {
		t.Error("the end of the mount tells of no loss")
	}
}

// TestLostDataIsNotSeen checks that an open after a write has failed shows what the
// server has, not what the kernel's pages still hold of the write.
func TestLostDataIsNotSeen(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := mounted(t, p, r.Addr, patience(300*time.Millisecond))
	want := strings.Repeat("-", 100_000)
	if err := os.WriteFile(m.remote("f"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(m.path("f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := io.Copy(io.Discard, f); err != nil {
		t.Fatal(err)
	}
	n := m.fs.root.childNode("f")
	n.mu.Lock()
	n.pages.first = n.pages.first.Add(-time.Minute) // the file has been known for long
	n.mu.Unlock()
	r.Pause()
	if _, err := f.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	r.Refuse()
	r.Cut()
	if err := f.Sync(); err == nil {
		t.Error("fsync pretended")
	}
	r.Resume()
	r.Accept()
	var got []byte
	waitFor(t, "the server is back", func() bool {
		got, err = os.ReadFile(m.path("f"))
		return err == nil
	})
	if string(got) != want {
		t.Errorf("the file begins with %q, that of the server with %q", got[:8], want[:8])
	}
}

// TestLostPage checks that a close tells of a page of memory that was lost, which the
// kernel wrote through a descriptor of its choice: one that appends, so that it went to
// the server through yet another one.
func TestLostPage(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(300*time.Millisecond))
	write(t, m.path("f"), string(make([]byte, 100_000)))
	f, err := os.OpenFile(m.path("f"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := m.fs.root.childNode("f").writing(nil)[0]
	ctx := &fuse.Context{Caller: fuse.Caller{Pid: pagesPID}}
	for _, page := range []string{"here", "lost"} {
		if _, errno := h.Write(ctx, []byte(page), 4096); errno != 0 {
			t.Fatal(errno)
		}
		if page == "here" {
			if err := f.Sync(); err != nil {
				t.Fatal(err)
			}
			r.Pause()
		}
	}
	r.Refuse()
	r.Cut()
	if err := f.Close(); err == nil {
		t.Error("close succeeded")
	}
	if err := m.end(); err == nil {
		t.Error("the end of the mount tells of no loss")
	}
}

// TestPageBesideClosing writes a page of memory through a descriptor that appends, while
// another one of the file is being closed, whose end must not take the page along.
func TestPageBesideClosing(t *testing.T) {
	m := near(t)
	write(t, m.path("f"), strings.Repeat("-", 8192))
	beside, err := os.OpenFile(m.path("f"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := m.fs.root.childNode("f")
	closing := n.writing(nil)[0]
	f, err := os.OpenFile(m.path("f"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := n.writing(closing)[0]
	plain, err := h.withoutAppend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	beside.Close()
	waitFor(t, "it is closed", func() bool { return !slices.Contains(n.writing(nil), closing) })
	plain.accept([]byte("page"), 4096)
	if err := f.Sync(); err != nil {
		t.Error(err)
	}
	if got := read(t, m.remote("f")); got[4096:4100] != "page" {
		t.Errorf("the server has %q", got[4096:4100])
	}
}

// TestStatBesideLostFile checks that a descriptor which was lost with its connection does
// not keep others of the same file from being described.
func TestStatBesideLostFile(t *testing.T) {
	p := chirptest.Server(t)
	m := start(t, p, p.Addr, quick)
	defer func() { _ = m.end() }() // it may tell of the lost one
	lost, err := os.Create(m.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer lost.Close()
	if _, err := lost.Write(make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	if _, err := lost.Stat(); err != nil { // what was written is there
		t.Fatal(err)
	}
	p.Stop()
	if err := os.Truncate(m.remote("f"), 70_000); err != nil {
		t.Fatal(err)
	}
	p.Start()
	if err := lost.Sync(); !errors.Is(err, syscall.ESTALE) {
		t.Fatalf("fsync: %v, want ESTALE", err)
	}
	f, err := os.OpenFile(m.path("f"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for range 8 {
		expire()
		if st, err := f.Stat(); err != nil || st.Size() != 70_000 {
			t.Fatalf("%v, %v", st, err)
		}
	}
}

// TestPausedServer is case 31: while the server is stopped calls fail within the limit
// set, and afterwards the mount works as before.
func TestPausedServer(t *testing.T) {
	p := chirptest.RealServer(t)
	m := mounted(t, p, p.Addr, quick, patience(500*time.Millisecond))
	write(t, m.path("f"), "content")
	f, err := os.OpenFile(m.path("f"), os.O_RDWR|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	expire()
	p.Pause()
	for range 2 {
		begin := time.Now()
		if n, err := f.ReadAt(make([]byte, 10), 0); err == nil || err == io.EOF {
			t.Errorf("read from a stopped server: %d, %v", n, err)
		}
		if _, err := os.Stat(m.path("g")); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("stat on a stopped server: %v", err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("the calls took %v to fail", took)
		}
	}
	p.Resume()
	if got := read(t, m.path("f")); got != "content" {
		t.Errorf("then read %q", got)
	}
	write(t, m.path("g"), "more")
}

// TestCutConnection is case 32: after the connections are cut the next calls work, on
// open files too.
func TestCutConnection(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := mounted(t, p, r.Addr, quick)
	f, err := os.Create(m.path("f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 5 {
		if _, err := fmt.Fprintln(f, i); err != nil {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		r.Cut()
		expire()
		if st, err := os.Stat(m.path("f")); err != nil || st.Size() != int64(2*i+2) {
			t.Errorf("round %d: %v, %v", i, st, err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if got := read(t, m.remote("f")); got != "0\n1\n2\n3\n4\n" {
		t.Errorf("the server has %q", got)
	}
}
