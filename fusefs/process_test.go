package fusefs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

// helperEnv makes the test program one of the helpers.
const helperEnv = "FUSEFS_TEST_HELPER"

// helpers are what the test program does as a process of its own, as a user of the
// mount that does not serve it. They print what went wrong.
var helpers = map[string]func(args []string) error{
	"count":  countLocked,
	"flock":  flockInterrupted,
	"mapped": writeMapped,
	"closes": closeTwice,
	"signal": underSignals,
	"mount":  mountAndWait,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		if err := helpers[name](os.Args[1:]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// helper is the command that runs a helper.
func helper(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = helperEnviron(name)
	return cmd
}

// helperEnviron makes the test program a helper; under the race detector it ends without
// the usual second of waiting for reports.
func helperEnviron(name string) []string {
	return append(os.Environ(), helperEnv+"="+name, "GORACE=atexit_sleep_ms=0")
}

// help runs a helper and fails the test when that does.
func help(t testing.TB, name string, args ...string) {
	t.Helper()
	if out, err := helper(t, name, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %v: %v: %s", name, args, err, out)
	}
}

// shell runs a script with the mount's place as $1 and the place on the server's disk
// as $2, not in the mount: a process that is being started must not wait for us.
func (m *mount) shell(t testing.TB, script string) string {
	t.Helper()
	out, err := m.try(script)
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, script)
	}
	return out
}

func (m *mount) try(script string) (string, error) {
	cmd := exec.Command("timeout", "-k", "2", "60", "sh", "-euc", script, "sh", m.dir, m.server.Root)
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// need skips the test where a program is missing.
func need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			chirptest.Missing(t, p+" is not installed")
		}
	}
}

// countLocked adds one to the number in a file, many times, under a lock of fcntl.
func countLocked(args []string) error {
	fd, err := unix.Open(args[0], unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for range 20 {
		lock := unix.Flock_t{Type: unix.F_WRLCK}
		for {
			if err = unix.FcntlFlock(uintptr(fd), unix.F_SETLKW, &lock); err != unix.EINTR {
				break
			}
		}
		if err != nil {
			return fmt.Errorf("F_SETLKW: %w", err)
		}
		buf := make([]byte, 16)
		k, err := unix.Pread(fd, buf, 0)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(buf[:k]))
		if err != nil {
			return err
		}
		if _, err := unix.Pwrite(fd, []byte(strconv.Itoa(n+1)), 0); err != nil {
			return err
		}
		lock.Type = unix.F_UNLCK
		if err := unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &lock); err != nil {
			return err
		}
	}
	return nil
}

// flockInterrupted waits for a lock that this process holds by another open file, and
// expects that an alarm ends it.
func flockInterrupted(args []string) error {
	var fds [2]int
	for i := range fds {
		fd, err := unix.Open(args[0], unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	if err := unix.Flock(fds[0], unix.LOCK_EX); err != nil {
		return err
	}
	if err := unix.Flock(fds[1], unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
		return fmt.Errorf("second lock: %v, want EWOULDBLOCK", err)
	}
	return nil
}

// resident takes a byte of memory that shall be there when the server is not.
var resident byte

// writeMapped changes a file through shared memory.
func writeMapped(args []string) error {
	f, err := os.OpenFile(args[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	resident = mem[len(mem)/2]
	if args[1] == "closed" { // what is written then goes on its way with the memory
		if err := f.Close(); err != nil {
			return err
		}
		fmt.Println("closed")
		_, _ = os.Stdin.Read(make([]byte, 1))
	}
	copy(mem[len(mem)/2:], args[2])
	if args[1] == "synced" {
		if err := unix.Msync(mem, unix.MS_SYNC); err != nil {
			return fmt.Errorf("msync: %w", err)
		}
	}
	return unix.Munmap(mem)
}

// waitFor waits until something is so.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: still not so", what)
}

// public copies the test program where other users can run it.
func public(t testing.TB) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "fusefs-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "fusefs.test")
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}
