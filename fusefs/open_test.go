package fusefs

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

func TestOpenFlags(t *testing.T) {
	for flags, want := range map[uint32]string{
		syscall.O_RDONLY:                 "r",
		syscall.O_WRONLY:                 "w",
		syscall.O_RDWR | syscall.O_TRUNC: "rwt",
		syscall.O_WRONLY | syscall.O_APPEND | syscall.O_NOFOLLOW:             "wa",
		syscall.O_WRONLY | syscall.O_CREAT | syscall.O_EXCL | syscall.O_SYNC: "wcxs",
		syscall.O_RDWR | syscall.O_DSYNC:                                     "rws",
	} {
		if got := openFlags(flags).String(); got != want {
			t.Errorf("%#o: %s, want %s", flags, got, want)
		}
	}
}

// TestSyncWrites checks that a write to a file that was opened with O_SYNC is on the
// server when it returns.
func TestSyncWrites(t *testing.T) {
	m := near(t)
	fd, err := unix.Open(m.path("f"), unix.O_WRONLY|unix.O_CREAT|unix.O_SYNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	want := ""
	for range 100 {
		if _, err := unix.Write(fd, []byte("line\n")); err != nil {
			t.Fatal(err)
		}
		want += "line\n"
		if got, err := os.ReadFile(m.remote("f")); err != nil || string(got) != want {
			t.Fatalf("the server has %d bytes, %v; want %d", len(got), err, len(want))
		}
	}
}

// TestReadBesideWriter reads a file that somebody writes to without a pause: the read
// waits for what was written before, not for the writer's end.
func TestReadBesideWriter(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := mounted(t, p, r.Addr)
	write(t, m.path("f"), "content")
	in, err := os.OpenFile(m.path("f"), os.O_RDONLY|syscall.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(m.path("f"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r.SetDelay(5 * time.Millisecond)
	got := make(chan error, 1)
	block := make([]byte, 4096)
	for i := range int64(100_000) {
		if _, err := out.WriteAt(block, 4096*(1+i%256)); err != nil {
			t.Fatal(err)
		}
		if i == 100 {
			go func() {
				b := make([]byte, 7)
				_, err := in.ReadAt(b, 0)
				if err == nil && string(b) != "content" {
					err = errors.New("read " + string(b))
				}
				got <- err
			}()
		}
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
	t.Error("the read does not end while somebody writes")
}
