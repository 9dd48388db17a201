package private

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// where is the usual mount point of the tests.
const where = "/chirp/host:9094"

// nobody is the ordinary user of tests that run as root; group is one more of
// his.
const (
	nobody = 65534
	group  = 4242
)

// copied is the test binary where every user can execute it, "" before the
// first test needs it.
var copied string

// setupMu guards copied.
var setupMu sync.Mutex

// tokens numbers the jobs, so that their processes can be found.
var tokens atomic.Int32

// planFor returns a Plan with one mount of the test's file system.
func planFor(argv ...string) Plan {
	return withConfig(testConfig{Hello: "hello, world\n"}, argv...)
}

// withConfig does so with another file system.
func withConfig(c testConfig, argv ...string) Plan {
	cfg, _ := json.Marshal(c)
	return Plan{Argv: argv, Mounts: []Mount{{Where: where, Config: cfg}}}
}

// script returns a Plan for a shell script.
func script(text string, args ...string) Plan {
	return planFor(append([]string{"sh", "-c", text, "sh"}, args...)...)
}

// job is a helper process to be.
type job struct {
	user  bool   // as an ordinary user
	setup string // a shell script run first, as root, in the helper's own mount namespace
	probe bool
	plan  Plan
	dir   string // working directory
	env   []string
	stdin io.Reader
	extra []*os.File
	attr  syscall.SysProcAttr
	// noPivot: the kernel refuses pivot_root.
	noPivot bool
	// userNS: all of it in a user namespace of its own, that has every uid.
	userNS bool
}

// helping is a running helper process.
type helping struct {
	t      *testing.T
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr *bytes.Buffer
	dir    string
	token  string
	gone   bool
}

// outcome is what became of it.
type outcome struct {
	helperResult
	exit           int
	stdout, stderr string
	log            string
}

// variants are the ways to have a namespace, all of which the tests cover.
type variant struct {
	name string
	user bool
	mode PIDMode
}

// eachWay runs a test in every way that the caller can go.
func eachWay(t *testing.T, f func(t *testing.T, v variant)) {
	eachOf(t, f, variant{"root", false, PIDAuto}, variant{"root without PID namespace", false, PIDNever},
		variant{"user", true, PIDAuto}, variant{"user without PID namespace", true, PIDNever})
}

// eachUser does so with two ways, where the others would tell nothing new.
func eachUser(t *testing.T, f func(t *testing.T, v variant)) {
	eachOf(t, f, variant{"root", false, PIDAuto}, variant{"user", true, PIDAuto})
}

func eachOf(t *testing.T, f func(t *testing.T, v variant), variants ...variant) {
	t.Parallel()
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if !v.user {
				needRoot(t)
			}
			f(t, v)
		})
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// of makes a job go the way of a variant.
func (j job) of(v variant) job {
	j.user, j.plan.PIDNamespace = v.user, v.mode
	return j
}

// binary copies the test binary to where every user can execute it.
func binary(t *testing.T) string {
	t.Helper()
	setupMu.Lock()
	defer setupMu.Unlock()
	if copied != "" {
		return copied
	}
	dir, err := os.MkdirTemp("", "private-test-")
	check(t, err)
	check(t, os.Chmod(dir, 0o755))
	data, err := os.ReadFile("/proc/self/exe")
	check(t, err)
	copied = filepath.Join(dir, "helper")
	check(t, os.WriteFile(copied, data, 0o755))
	return copied
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// openDir returns a directory that everybody may use.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		check(t, os.Chmod(d, 0o777))
	}
	return dir
}

// start starts the helper. Of root's, all have a mount namespace of their own,
// all shared as on a machine with systemd, in which the setup does no harm.
func (j job) start(t *testing.T) *helping {
	t.Helper()
	if j.setup != "" || j.userNS {
		needRoot(t)
	}
	bin, dir := binary(t), openDir(t)
	spec := helperSpec{Plan: j.plan, Probe: j.probe, NoPivot: j.noPivot, Out: dir + "/result", LogTo: dir + "/log"}
	text, err := json.Marshal(spec)
	check(t, err)
	check(t, os.WriteFile(dir+"/spec", text, 0o644))
	token := fmt.Sprintf("PRIVATE_TEST_TOKEN=%d.%d", os.Getpid(), tokens.Add(1))

	args := []string{bin}
	if os.Geteuid() != 0 {
		j.env = append(j.env, "TEST_SHARED=1")
	} else {
		drop := ""
		if j.user {
			drop = fmt.Sprintf("setpriv --reuid %d --regid %d --groups %d,%d --", nobody, nobody, nobody, group)
		}
		args = []string{"sh", "-ec", "mount --make-rprivate /; mount --make-rshared /\n" + j.setup + "\nexec " + drop + ` "$0"`, bin}
		j.attr.Cloneflags |= syscall.CLONE_NEWNS
	}
	if j.userNS {
		all := []syscall.SysProcIDMap{{Size: 70000}}
		j.attr.Cloneflags |= syscall.CLONE_NEWUSER
		j.attr.UidMappings, j.attr.GidMappings, j.attr.GidMappingsEnableSetgroups = all, all, true
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	r := &helping{t: t, cmd: exec.CommandContext(ctx, args[0], args[1:]...), stderr: &bytes.Buffer{}, dir: dir, token: token}
	r.cmd.Env = append([]string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", helperEnv + "=" + dir + "/spec", "TEST_DIR=" + dir, "GORACE=" + os.Getenv("GORACE"), token}, j.env...)
	r.cmd.Dir, r.cmd.Stdin, r.cmd.ExtraFiles, r.cmd.SysProcAttr = j.dir, j.stdin, j.extra, &j.attr
	if r.cmd.Dir == "" {
		r.cmd.Dir = dir
	}
	r.cmd.Stderr = r.stderr
	r.cmd.WaitDelay = 5 * time.Second
	stdout, err := r.cmd.StdoutPipe()
	check(t, err)
	r.out = bufio.NewReader(stdout)
	check(t, r.cmd.Start())
	t.Cleanup(func() {
		if !r.gone {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	return r
}

// line returns the next line of standard output.
func (r *helping) line() string {
	r.t.Helper()
	s, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read a line: %v; got %q, standard error %q, log %q", err, s, r.stderr, r.log())
	}
	return strings.TrimSuffix(s, "\n")
}

// log returns the log so far.
func (r *helping) log() string {
	text, _ := os.ReadFile(r.dir + "/log")
	return string(text)
}

// signal sends a signal to the outer alone.
func (r *helping) signal(s syscall.Signal) {
	r.t.Helper()
	check(r.t, r.cmd.Process.Signal(s))
}

// wait waits for the helper's end, and checks that it left nothing.
func (r *helping) wait() outcome {
	r.t.Helper()
	rest, err := io.ReadAll(r.out)
	check(r.t, err)
	_ = r.cmd.Wait()
	r.gone = true
	o := outcome{exit: r.cmd.ProcessState.ExitCode(), stdout: string(rest), stderr: r.stderr.String(), log: r.log()}
	if text, err := os.ReadFile(r.dir + "/result"); err == nil {
		check(r.t, json.Unmarshal(text, &o.helperResult))
	}
	if len(o.Mounts) > 0 {
		r.t.Errorf("mounts left: %q", o.Mounts)
	}
	if left := r.processes(); len(left) > 0 {
		r.t.Errorf("processes left: %v", left)
	}
	return o
}

// run is start and wait.
func (j job) run(t *testing.T) outcome {
	t.Helper()
	return j.start(t).wait()
}

// processes lists the helper's processes and their descendants, by the token
// in their environment, with their arguments.
func (r *helping) processes() map[int]string {
	list := make(map[int]string)
	for _, pid := range processes() {
		dir := "/proc/" + strconv.Itoa(pid)
		env, err := os.ReadFile(dir + "/environ")
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), r.token) {
			args, _ := os.ReadFile(dir + "/cmdline")
			list[pid] = strings.ReplaceAll(string(args), "\x00", " ")
		}
	}
	return list
}

// eventuallyGone waits until no process is left, for at most ten seconds.
func (r *helping) eventuallyGone() {
	r.t.Helper()
	for end := time.Now().Add(10 * time.Second); len(r.processes()) > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("processes left: %v", r.processes())
		}
	}
}

// expect checks a command's end without a failure of ours.
func (o outcome) expect(t *testing.T, exit int, stdout string) {
	t.Helper()
	if o.exit != exit || o.Error != "" || o.stdout != stdout {
		t.Errorf("exit %d, error %q, output %q, want %d and %q; standard error %q, log:\n%s",
			o.exit, o.Error, o.stdout, exit, stdout, o.stderr, o.log)
	}
}

// expectError checks for a failure of ours.
func (o outcome) expectError(t *testing.T, is, text string) {
	t.Helper()
	if o.exit != ourFailure || is != "" && !slices.Contains(o.Is, is) || !strings.Contains(o.Error, text) {
		t.Errorf("exit %d, error %q (%v), want %s with %q; standard error %q, log:\n%s",
			o.exit, o.Error, o.Is, is, text, o.stderr, o.log)
	}
}
