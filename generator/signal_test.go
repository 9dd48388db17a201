package generator

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// inFetch starts the job and returns when its runtime is half fetched.
func (n *node) inFetch() (*exec.Cmd, func() string) {
	n.t.Helper()
	n.job.Runtime.Location = web.URL + "/hang/" + strings.ReplaceAll(n.t.Name(), "/", "-") + strconv.Itoa(n.hung)
	n.hung++
	cmd, said := n.command()
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	web.awaitHanging(n.t, n.job.Runtime.Location)
	for len(n.left("home")) < 2 { // the lock, and the file once curl has written what it got
		time.Sleep(5 * time.Millisecond)
	}
	return cmd, said.String
}

// awaitNone waits until no process of the groups is left; one that is dead and not yet reaped does not
// count.
func awaitNone(t *testing.T, groups ...int) {
	t.Helper()
	var alive []string
	for range 200 {
		groups = slices.DeleteFunc(groups, func(group int) bool { return syscall.Kill(-group, 0) == syscall.ESRCH })
		if alive = members(t, groups); len(alive) == 0 {
			return
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Errorf("processes are left: %q", alive)
}

// members lists the living processes of the groups, as /proc/PID/stat has them.
func members(t *testing.T, groups []int) []string {
	if len(groups) == 0 {
		return nil
	}
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range files {
		stat, err := os.ReadFile(f)
		if err != nil {
			continue // it has just ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, ppid, pgrp, ...
		if group, _ := strconv.Atoi(fields[2]); fields[0] != "Z" && slices.Contains(groups, group) {
			found = append(found, string(stat))
		}
	}
	return found
}

// Case 37, before the runtime takes over: a signal to the script alone ends it, and what it started.
func TestSignalInFetch(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		var groups []int
		signals := []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1}
		if slices.Contains([]string{"dash", "busybox", "bash"}, n.shell[0]) {
			signals = append(signals, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR2)
		}
		for _, sig := range signals {
			cmd, said := n.inFetch()
			began := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			code := exitCode(t, cmd.Wait())
			if code != 128+int(sig) || n.recorded("argv") != "" {
				t.Errorf("%v: exit code %d: %s", sig, code, said())
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("%v: answered after %v", sig, took)
			}
			if files := append(n.left("home"), n.left("tmp")...); len(files) > 0 {
				t.Errorf("%v: left behind: %v", sig, files)
			}
			groups = append(groups, cmd.Process.Pid)
		}
		awaitNone(t, groups...)
	})
}

// A script killed outright leaves neither process nor file, because its guard sees to it.
func TestKillInFetch(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		cmd, _ := n.inFetch()
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() //nolint:errcheck // it was killed
		awaitNone(t, cmd.Process.Pid)
		if files := append(n.left("home"), n.left("tmp")...); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	}, "dash", "busybox", "bash")
}

// When the whole group is killed at once the next job sweeps.
func TestKillGroupInFetch(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		cmd, _ := n.inFetch()
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() //nolint:errcheck // it was killed
		awaitNone(t, cmd.Process.Pid)
		if files := n.left("home"); len(files) != 2 { // the lock and half of the runtime
			t.Fatalf("nothing to sweep: %v", files)
		}
		n.job.Runtime.Location = web.URL + "/good/again"
		if said := n.mustRun("-d"); strings.Contains(said, "another job") {
			t.Errorf("waited for a job that is dead: %s", said)
		}
		if files := n.left("home"); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	})
}

// A signal that the parent had ignored stays ignored for the application: nohup works.
func TestIgnoredSignal(t *testing.T) {
	n := newNode(t)
	n.shell = append([]string{"sh", "-c", `trap '' HUP; exec "$@"`, "sh"}, n.shell...)
	cmd, said := n.inFetch()
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, cmd.Wait()); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d: %s", code, said())
	}
	if _, err := os.Stat(n.path("out/argv")); err == nil {
		t.Error("the runtime ran")
	}
}
