package fusefs

import (
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
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
