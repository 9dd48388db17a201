package generator

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/generator/job"
)

// standIn takes the place of the runtime: it writes down everything that it was given.
const standIn = `#!/bin/sh
umask 022
cd "$SK_TEST_OUT" || exit 99
for word; do printf '%s\0' "$word"; done >argv
cat <&3 >job
if [ -e /proc/self/fd/4 ]; then cat <&4 >ticket; fi
if [ -e /proc/self/fd/5 ]; then cat <&5 >proxy; fi
env -0 >env
ls /proc/self/fd >fds
std=$(readlink /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2)
echo "$std" >std
cat >stdin
echo "$0" >runtime
exit "${SK_TEST_EXIT:-0}"
`

// shells are the ways to run a script; each that is not installed is skipped.
var shells = map[string][]string{
	"dash": {"dash"}, "busybox": {"busybox", "sh"}, "bash": {"bash"}, "bash-posix": {"bash", "--posix"}, "mksh": {"mksh"},
	"yash": {"yash", "--posix"}, "posh": {"posh"}, "zsh": {"zsh", "--emulate", "sh"},
}

// peer skips the test when none of the programs is installed.
func peer(t *testing.T, programs ...string) {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err == nil {
			return
		}
	}
	if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
		t.Fatalf("none of %v is installed", programs)
	}
	t.Skipf("none of %v is installed", programs)
}

// eachShell runs a test under every shell, or the named ones, beside each other.
func eachShell(t *testing.T, test func(t *testing.T, n *node), names ...string) {
	for name, words := range shells {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			peer(t, words[0])
			t.Parallel()
			n := newNode(t)
			n.shell = words
			test(t, n)
		})
	}
}

// node is a directory that stands for a machine on which a job script runs.
type node struct {
	t     *testing.T
	dir   string   // holds everything: out, home, work
	shell []string // dash, unless a test says otherwise
	env   []string // whole environment but SK_TEST_...
	stdin string
	code  int // exit code of the application
	job   *job.Job
	parts Parts
	uid   int      // of whoever runs the script; 0: of the test
	hung  int      // how often inFetch was called
	tweak []string // old and new texts in the script
}

func newNode(t *testing.T) *node {
	t.Helper()
	peer(t, "curl", "wget", "python3") // without one a machine is no node
	n := &node{t: t, dir: t.TempDir(), shell: shells["dash"], job: readyJob(t)}
	for _, d := range []string{"out", "home", "work", "tmp"} {
		n.mkdir(d)
	}
	n.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + n.path("home"), "TMPDIR=" + n.path("tmp")}
	n.parts = Parts{Job: n.job, Ticket: []byte(testTicket), Version: "1.2.3"}
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) mkdir(name string) {
	n.t.Helper()
	if err := os.MkdirAll(n.path(name), 0o700); err != nil {
		n.t.Fatal(err)
	}
}

// hurry takes the pauses out of the fetch.
func (n *node) hurry() {
	n.tweak = append(n.tweak, "sk_pauses='1 3 0'", "sk_pauses='- 0'", `sk_sleep "$sk_pause"`, ":")
}

func (n *node) setenv(words ...string) { n.env = append(n.env, words...) }

// write makes the job script for the runtime below a path of the test's web server.
func (n *node) write() string {
	n.t.Helper()
	script, err := Script(n.parts)
	if err != nil {
		n.t.Fatal(err)
	}
	for i := 0; i < len(n.tweak); i += 2 {
		if bytes.Count(script, []byte(n.tweak[i])) != 1 {
			n.t.Fatalf("%q is not in the script once", n.tweak[i])
		}
		script = bytes.Replace(script, []byte(n.tweak[i]), []byte(n.tweak[i+1]), 1)
	}
	file := n.path("job.sh")
	if err := WriteFile(file, script); err != nil {
		n.t.Fatal(err)
	}
	if n.uid != os.Getuid() && n.uid != 0 {
		if err := os.Chown(file, n.uid, n.uid); err != nil {
			n.t.Fatal(err)
		}
	}
	return file
}

// command prepares a run of the job script; it is killed with its group when the test takes too long.
func (n *node) command(args ...string) (*exec.Cmd, *bytes.Buffer) {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	n.t.Cleanup(cancel)
	words := append(append([]string{}, n.shell...), n.write())
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if n.uid != os.Getuid() && n.uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(n.uid), Gid: uint32(n.uid)}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	cmd.Dir = n.path("work")
	cmd.Stdin = strings.NewReader(n.stdin)
	cmd.Env = append(append([]string{}, n.env...), "SK_TEST_OUT="+n.path("out"))
	if n.code != 0 {
		cmd.Env = append(cmd.Env, "SK_TEST_EXIT="+strings.TrimSpace(itoa(n.code)))
	}
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Stdout = &stderr, &stderr
	return cmd, &stderr
}

// run runs the job script to its end and returns its exit code and what it said.
func (n *node) run(args ...string) (code int, said string) {
	n.t.Helper()
	cmd, stderr := n.command(args...)
	return exitCode(n.t, cmd.Run()), stderr.String()
}

// mustRun is run for what has to succeed.
func (n *node) mustRun(args ...string) string {
	n.t.Helper()
	code, said := n.run(args...)
	if code != 0 {
		n.t.Fatalf("exit code %d: %s", code, said)
	}
	return said
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	case exit.ExitCode() < 0:
		t.Fatalf("ended by %v", exit)
	}
	return exit.ExitCode()
}

// recorded returns what the stand-in wrote down; nothing when it did not run.
func (n *node) recorded(name string) string {
	n.t.Helper()
	data, err := os.ReadFile(n.path("out/" + name))
	if err != nil && !os.IsNotExist(err) {
		n.t.Fatal(err)
	}
	return string(data)
}

func (n *node) argv() []string {
	words := strings.Split(n.recorded("argv"), "\x00")
	return words[:len(words)-1]
}

func (n *node) environment() map[string]string {
	vars := map[string]string{}
	for _, word := range strings.Split(n.recorded("env"), "\x00") {
		if name, value, ok := strings.Cut(word, "="); ok {
			vars[name] = value
		}
	}
	return vars
}

// left lists every file below a directory of the node, the runtime itself apart.
func (n *node) left(name string) []string {
	n.t.Helper()
	var files []string
	err := filepath.Walk(n.path(name), func(p string, info os.FileInfo, err error) error {
		if os.IsNotExist(err) {
			return nil // it went away meanwhile
		}
		if err == nil && !info.IsDir() && filepath.Base(p) != "skeletonkey-"+sumOf(standIn) {
			files = append(files, strings.TrimPrefix(p, n.dir))
		}
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return files
}

func sumOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
