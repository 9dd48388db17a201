package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// binary is the program as users have it: static, in a place that every user can
// reach, so that the tests run the real thing and nodes fetch it.
var binary string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "skeletonkey-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "skeletonkey")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "building the program:", err)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// TestScripts runs testdata/script: what a person or a script types, and what has
// to come of it.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setup,
		Condition:           condition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": serveScript, "ordinary": ordinaryScript, "gone": goneScript,
		},
	})
}

func setup(e *testscript.Env) error {
	e.Setenv("PATH", filepath.Dir(binary)+":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("SHARED", sharedDir())
	e.Setenv("TMPDIR", e.Getenv("TMPDIR"))
	e.Setenv("SKELETONKEY_CACHE", filepath.Join(e.WorkDir, "cache"))
	e.Setenv("XDG_STATE_HOME", filepath.Join(e.WorkDir, "state"))
	for dir := e.WorkDir; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return os.Chmod(e.Getenv("TMPDIR"), 0o1777)
}

// sharedDir is where data lies that is not part of the project.
func sharedDir() string {
	dir := os.Getenv("SKELETONKEY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return abs
}

func requirePeers() bool { return os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" }

// condition knows [root]; [fuse]: whether /dev/fuse is open to everybody; [shared]:
// whether the shared data is there; [peer:PROGRAM], and [fetcher]: what a job script
// fetches with. What is missing though it is required is an error.
func condition(name string) (bool, error) {
	if peer, ok := strings.CutPrefix(name, "peer:"); ok {
		return havePeer(peer)
	}
	switch name {
	case "fetcher":
		return havePeer("curl", "wget", "python3")
	case "shared":
		_, err := os.Stat(sharedDir())
		return err == nil, nil
	case "root":
		return os.Getuid() == 0, nil
	case "fuse":
		info, err := os.Stat("/dev/fuse")
		open := err == nil && info.Mode().Perm()&0o006 == 0o006
		if !open && requirePeers() {
			return false, fmt.Errorf("/dev/fuse is not open to everybody: %v, %v", info, err)
		}
		return open, nil
	}
	return false, fmt.Errorf("unknown condition %s", name)
}

// havePeer reports whether one of the programs is there.
func havePeer(programs ...string) (bool, error) {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			return true, nil
		}
	}
	if requirePeers() {
		return false, fmt.Errorf("none of %v is there", programs)
	}
	return false, nil
}

// serveScript is `serve [FLAG...]`: it starts a server and sets $SERVER, and $WEB
// when --dist is among the flags. The server is told to stop when the script ends,
// and has to end well.
func serveScript(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("serve cannot be negated")
	}
	ports := ts.MkAbs("ports")
	ts.Check(os.MkdirAll(ports, 0o755))
	portFile := filepath.Join(ports, strconv.Itoa(time.Now().Nanosecond()))
	args = append([]string{"serve", "--listen", "127.0.0.1:0", "--port-file", portFile, "--log-format", "json"}, args...)
	logFile, err := os.Create(portFile + ".log")
	ts.Check(err)
	defer logFile.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stderr = ts.MkAbs("."), logFile
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("HOME"), "XDG_STATE_HOME=" + ts.Getenv("XDG_STATE_HOME")}
	ts.Check(cmd.Start())
	ts.Defer(func() { stop(ts, cmd, portFile+".log") })
	port := waitFor(ts, portFile)
	ts.Setenv("SERVER", "127.0.0.1:"+port)
	ts.Setenv("SERVER_PID", strconv.Itoa(cmd.Process.Pid))
	if i := strings.Index(readFile(portFile+".log"), `"dist":"127`); i >= 0 {
		address, _, _ := strings.Cut(readFile(portFile + ".log")[i+len(`"dist":"`):], `"`)
		ts.Setenv("WEB", "http://"+address)
	}
}

func waitFor(ts *testscript.TestScript, file string) string {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text := strings.TrimSpace(readFile(file))
		if log := readFile(file + ".log"); text != "" && strings.Contains(log, `"msg":"serving"`) {
			return text
		}
	}
	ts.Fatalf("the server did not start: %s", readFile(file+".log"))
	return ""
}

func readFile(file string) string {
	text, _ := os.ReadFile(file) // a file that is not there yet is empty
	return string(text)
}

func stop(ts *testscript.TestScript, cmd *exec.Cmd, log string) {
	_ = cmd.Process.Signal(syscall.SIGTERM) // gone already when the script killed it
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	hung := !timer.Stop()
	if hung || err != nil && cmd.ProcessState.ExitCode() > 0 {
		ts.Fatalf("the server did not end well: %v\n%s", err, readFile(log))
	}
}

// ordinaryScript is `ordinary COMMAND...`: the command as uid 65534, when this is
// root; as ourselves otherwise.
func ordinaryScript(ts *testscript.TestScript, neg bool, args []string) {
	if os.Getuid() == 0 {
		args = append([]string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"}, args...)
	}
	err := ts.Exec(args[0], args[1:]...)
	if (err == nil) == neg {
		ts.Fatalf("%v: %v, wanted failure: %v", args, err, neg)
	}
}

// goneScript is `gone TEXT`: no mount and no process whose line holds the text may
// be there, within some seconds for what is just ending.
func goneScript(ts *testscript.TestScript, _ bool, args []string) {
	var found string
	for range 100 {
		if found = present(args[0]); found == "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	ts.Fatalf("still there: %s", found)
}

func present(text string) string {
	for line := range strings.Lines(readFile("/proc/self/mountinfo")) {
		if strings.Contains(line, text) {
			return "mount " + line
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range processes {
		if strings.Contains(file, strconv.Itoa(os.Getpid())) {
			continue
		}
		if strings.Contains(readFile(file), text) {
			return "process " + readFile(filepath.Join(filepath.Dir(file), "cmdline"))
		}
	}
	return ""
}
