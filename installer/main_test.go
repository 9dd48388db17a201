package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The environment variables by which a test runs itself as another process.
const (
	childEnv     = "INSTALLER_TEST_CHILD"      // what to do, as JSON of a childTask
	noOpenat2Env = "INSTALLER_TEST_NO_OPENAT2" // run the tests where openat2 is missing
)

func TestMain(m *testing.M) {
	if os.Getenv(noOpenat2Env) != "" {
		if err := forbidOpenat2(); err != nil {
			fmt.Fprintln(os.Stderr, "seccomp:", err)
			os.Exit(3)
		}
	}
	if task := os.Getenv(childEnv); task != "" {
		os.Exit(childMain(task))
	}
	goleak.VerifyTestMain(m)
}

// childTask is what a child process does, in this order, before it prints the outcome.
type childTask struct {
	Unpack, To string
	Times      int // of unpacking into the same place
	Fetch      string
	Route      string // a URL: by which proxy would it be fetched?
	Remove     string
}

// childResult is what it prints.
type childResult struct {
	Err   string
	Proxy string
	Peak  int64 // most memory, bytes
}

func childMain(raw string) int {
	var task childTask
	if err := json.Unmarshal([]byte(raw), &task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	var res childResult
	for range task.Times {
		if _, err := UnpackFile(context.Background(), task.Unpack, task.To, UnpackOptions{}); err != nil {
			res.Err = err.Error()
		}
	}
	if task.Fetch != "" {
		got, err := Fetch(context.Background(), task.Fetch, task.To, FetchOptions{Attempts: 1})
		if err != nil {
			res.Err = err.Error()
		}
		res.Proxy = got.Proxy
	}
	if task.Route != "" {
		u, err := url.Parse(task.Route)
		routes, rerr := newRoutes(nil)
		if err = errors.Join(err, rerr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		res.Proxy = routes[0].name(u)
	}
	if task.Remove != "" {
		if err := RemoveTree(task.Remove); err != nil {
			res.Err = err.Error()
		}
	}
	res.Peak = peakMemory()
	json.NewEncoder(os.Stdout).Encode(res)
	return 0
}

// peakMemory is the most memory that this process had.
func peakMemory() int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	var kib int64
	fmt.Sscan(string(rest), &kib)
	return kib << 10
}

const nobody = 65534

// runChild runs task in another process of the program exe, "" for this one; as
// nobody if exe is given.
func runChild(t *testing.T, exe string, task childTask, env ...string) childResult {
	t.Helper()
	raw, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append([]string{childEnv + "=" + string(raw), "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}, env...)
	if exe != "" {
		cmd.Path, cmd.Dir = exe, "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var res childResult
	if err := json.Unmarshal(out, &res); err != nil {
		t.Fatalf("%v: %q", err, out)
	}
	return res
}

// publicCopy copies this program to where every user can run it.
func publicCopy(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(publicDir(t), "installer.test")
	if err := errors.Join(os.WriteFile(path, data, 0o755), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// publicDir is a temporary directory that every user can reach.
func publicDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// forbidOpenat2 makes openat2 fail with ENOSYS in the whole process, as older
// kernels and some containers do.
func forbidOpenat2() error {
	const allow, errno = 0x7fff0000, 0x00050000
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_OPENAT2, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: errno | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: allow},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const setModeFilter, allThreads = 1, 1
	_, _, e := unix.Syscall(unix.SYS_SECCOMP, setModeFilter, allThreads, uintptr(unsafe.Pointer(&prog)))
	if e != 0 {
		return e
	}
	return nil
}

// needPeer skips the test where a program is missing, or fails it where the
// environment says that none may be.
func needPeer(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
				t.Fatalf("%s is required: %v", p, err)
			}
			t.Skipf("no %s here", p)
		}
	}
}

// needRoot skips the test for ordinary users.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func run(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
}

// setUmask sets the umask for one test.
func setUmask(t *testing.T, mask int) {
	old := syscall.Umask(mask)
	t.Cleanup(func() { syscall.Umask(old) })
}
