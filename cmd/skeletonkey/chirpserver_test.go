package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
)

// options are chirp_server's, with a value for each that takes one.
var options = []struct{ long, short, value string }{
	{"default-acl", "A", "/dev/null"}, {"inherit-default-acl", "", ""}, {"auth", "a", "unix"}, {"background", "b", ""},
	{"pid-file", "B", "/tmp/pid"}, {"no-core-dump", "C", ""}, {"challenge-dir", "c", "/tmp"}, {"debug", "d", "all"},
	{"parent-death", "E", ""}, {"parent-check", "e", "300"}, {"free-space", "F", "10G"}, {"group-url", "G", "http://h/"},
	{"help", "h", ""}, {"user", "i", "nobody"}, {"interface", "I", "127.0.0.1"}, {"max-clients", "M", "10"},
	{"catalog-name", "n", "name"}, {"debug-file", "o", ":stdout"}, {"debug-rotate-max", "O", "10M"}, {"superuser", "P", "unix:root"},
	{"port", "p", "9094"}, {"project-name", "", "project"}, {"root-quota", "Q", "1T"}, {"read-only", "R", ""}, {"root", "r", "file:///tmp"},
	{"stalled", "s", "3600s"}, {"group-cache-exp", "T", "900s"}, {"idle-clients", "t", "60s"}, {"catalog-update", "U", "5m"},
	{"advertise", "u", "host"}, {"advertize", "", "host"}, {"version", "v", ""}, {"passwd", "W", "/etc/passwd"}, {"owner", "w", "me"},
	{"transient", "y", "/tmp"}, {"port-file", "Z", "/tmp/port"}, {"unix-timeout", "z", "5s"}, {"jobs", "", ""},
	{"job-concurrency", "", "2"}, {"job-time-limit", "", "3600s"},
}

// TestChirpServerOptions parses each option in each way in which it may be written.
func TestChirpServerOptions(t *testing.T) {
	for _, c := range options {
		ways := [][]string{{"--" + c.long, c.value}, {"--" + c.long + "=" + c.value}, {"-" + c.short, c.value}, {"-" + c.short + c.value}}
		if c.value == "" {
			ways = [][]string{{"--" + c.long}, {"-" + c.short}}
		}
		for _, args := range ways {
			if c.short == "" && !strings.HasPrefix(args[0], "--") {
				continue
			}
			o := new(chirpOptions)
			f := o.flags()
			if err := f.Parse(args); err != nil || f.NArg() > 0 || !f.Changed(c.long) {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
	o := new(chirpOptions)
	if err := o.flags().Parse([]string{"--inherit", "--cat", "x"}); err == nil || !o.serve.inherit {
		t.Errorf("abbreviations: %v, %v", err, o.serve.inherit)
	}
}

// TestManualsOptions takes the options from the manual page and the help of the real
// program: each must be in the table above.
func TestManualsOptions(t *testing.T) {
	known := func(name string) bool {
		return slices.ContainsFunc(options, func(c struct{ long, short, value string }) bool {
			return "--"+c.long == name || c.short != "" && "-"+c.short == name
		})
	}
	option := regexp.MustCompile(`(?m)^\s+((?:-\w,\s*)?)(--[a-z-]+)`)
	texts := map[string]*exec.Cmd{"manual": exec.Command("man", "chirp_server"), "help": exec.Command("chirp_server", "--help")}
	for name, cmd := range texts {
		if _, err := exec.LookPath("chirp_server"); err != nil {
			chirptest.Missing(t, "no chirp_server here (Debian package coop-computing-tools)")
		}
		cmd.Env = append(os.Environ(), "MANWIDTH=200", "MAN_KEEP_FORMATTING=0")
		out, err := cmd.Output()
		if len(out) == 0 && name == "manual" {
			t.Logf("no manual page: %v", err)
			continue
		}
		found := option.FindAllStringSubmatch(regexp.MustCompile(`.\x08`).ReplaceAllString(string(out), ""), -1)
		if len(found) < 30 {
			t.Fatalf("only %d options were found in the %s", len(found), name)
		}
		for _, m := range found {
			if short := strings.TrimRight(m[1], ", \t"); !known(m[2]) || short != "" && !known(short) {
				t.Errorf("%s: %s %s is not in the table", name, short, m[2])
			}
		}
	}
}

func TestUnits(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "500": 500, "64K": 64 << 10, "10g": 10 << 30, "100MB": 100 << 20, "1T": 1 << 40, "x": -1, "": -1, "-1": -1, "9999999T": -1, "K": -1} {
		var s size
		if err := s.Set(text); (err != nil) != (want < 0) || err == nil && int64(s) != want {
			t.Errorf("size %q is %d, %v; want %d", text, s, err, want)
		}
	}
	for text, want := range map[string]time.Duration{"300": 300 * time.Second, "5m": 5 * time.Minute, "60s": time.Minute, "2h": 2 * time.Hour, "1d": 24 * time.Hour, "": -1, "5x": -1, "-5": -1} {
		var d time.Duration
		if err := (span{&d}).Set(text); (err != nil) != (want < 0) || err == nil && d != want {
			t.Errorf("time %q is %v, %v; want %v", text, d, err, want)
		}
	}
}

// dropIn runs the program as chirp_server.
type dropIn struct {
	t       *testing.T
	dir     string
	program string
}

func newDropIn(t *testing.T) *dropIn {
	dir, err := os.MkdirTemp("/tmp", "chirp-server-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d := &dropIn{t, dir, filepath.Join(dir, chirpServerName)}
	for _, err := range []error{os.Chmod(dir, 0o755), os.Symlink(binary, d.program), os.Mkdir(d.path("root"), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func (d *dropIn) path(name string) string { return filepath.Join(d.dir, name) }

// command prepares a run.
func (d *dropIn) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(d.t.Context(), 60*time.Second)
	d.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, d.program, args...)
	cmd.Dir = d.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + d.dir, "XDG_STATE_HOME=" + d.path("state")}
	return cmd
}

// wait waits for a file's line.
func (d *dropIn) wait(name string) string {
	d.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(d.path(name)); err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text))
		}
	}
	d.t.Fatalf("%s does not come", name)
	return ""
}

// chirp runs Debian's tool.
func (d *dropIn) chirp(port string, args ...string) (string, error) {
	if _, err := exec.LookPath("chirp"); err != nil {
		chirptest.Missing(d.t, "no chirp here (Debian package coop-computing-tools)")
	}
	cmd := exec.CommandContext(d.t.Context(), "chirp", append([]string{"-t", "20", "-a", "unix", "127.0.0.1:" + port}, args...)...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestChirpServerInBackground starts a daemon as scripts do, uses it and stops it.
func TestChirpServerInBackground(t *testing.T) {
	d := newDropIn(t)
	if err := os.WriteFile(d.path("f"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	low := 20000 + os.Getpid()%10000
	cmd := d.command("-r", "file://"+d.path("root"), "-b", "-B", d.path("pid"), "-Z", d.path("port"), "-I", "127.0.0.1", "-u", "-", "-C",
		"-a", "unix", "-d", "all", "-o", d.path("log"), "-O", "2K", "-y", d.dir, "-Q", "1M", "--idle-clients=60s", "-e", "300")
	cmd.Env = append(cmd.Env, "TCP_LOW_PORT="+strconv.Itoa(low), "TCP_HIGH_PORT="+strconv.Itoa(low+500))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("%v: %s", err, out)
	}
	port := d.wait("port") // written before the parent ends
	pid, err := strconv.Atoi(d.wait("pid"))
	if err != nil || pid == cmd.Process.Pid {
		t.Fatalf("the daemon is %d (%v), the parent was %d", pid, err, cmd.Process.Pid)
	}
	defer syscall.Kill(pid, syscall.SIGKILL)
	if n, _ := strconv.Atoi(port); n < low || n > low+500 {
		t.Errorf("port %s is not in the range from %d", port, low)
	}
	for range 12 {
		if out, err := d.chirp(port, "put", "f", "/f"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := d.chirp(port, "get", "/f", "back"); err != nil || d.wait("back") != "content" {
		t.Errorf("%v: %s", err, out)
	}
	for _, name := range []string{"log", "log.old"} {
		if info, err := os.Stat(d.path(name)); err != nil || info.Size() > 2<<10+1000 {
			t.Errorf("%s was not rotated: %v, %v", name, info, err)
		}
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); syscall.Kill(pid, 0) == nil && !isZombie(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the daemon does not end")
		}
	}
	if _, err := os.Stat(d.path("pid")); err == nil {
		t.Error("its number is still there")
	}
}

func isZombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(stat, []byte(") Z"))
}

// TestChirpServerSays tells what it cannot do, once, and refuses what it must not.
func TestChirpServerSays(t *testing.T) {
	d := newDropIn(t)
	for want, args := range map[string][]string{
		"hdfs":        {"-r", "hdfs://h:9000/x"},
		"--bogus":     {"--bogus"},
		"no option":   {"stray"},
		"kerberos":    {"-a", "kerberos"},
		"no such":     {"-r", d.path("nothing"), "-p", "0"},
		"not a size":  {"-F", "much"},
		"not a time":  {"-t", "soon"},
		"nosuchuser":  {"-r", d.path("root"), "-p", "0", "-i", "nosuchuser"},
		"debug-file":  {"-o", d.path("no/where")},
		"max-clients": {"-M", "many"},
	} {
		if want == "nosuchuser" && os.Getuid() != 0 {
			continue
		}
		cmd := d.command(args...)
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %s", args, err, out)
		}
	}
	cmd := d.command("-r", d.path("root"), "-p", "0", "-I", "127.0.0.1", "-Z", d.path("port"), "-y", d.dir, "-y", "/tmp", "-E")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	d.wait("port")
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil || strings.Count(log.String(), "--transient") != 1 {
		t.Errorf("%v: %s", err, &log)
	}
	for _, option := range []string{"-h", "-v"} {
		out, err := d.command(option).Output()
		if err != nil || !bytes.Contains(out, []byte(chirpServerName)) || option == "-h" && !bytes.Contains(out, []byte("--unix-timeout")) {
			t.Errorf("%s: %v: %s", option, err, out)
		}
	}
}

// TestChirpServerGivesUpRoot serves as an ordinary user, with names from another file.
func TestChirpServerGivesUpRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give it up")
	}
	d := newDropIn(t)
	if err := os.WriteFile(d.path("passwd"), []byte("boss:x:0:0::/:/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(d.path("root"), 65534, -1); err != nil {
		t.Fatal(err)
	}
	cmd := d.command("-r", d.path("root"), "-i", "nobody", "-Z", d.path("port"), "-I", "127.0.0.1", "-W", d.path("passwd"), "-P", "unix:boss",
		"--state", d.path("own/state"), "-M", "1")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, &log)
		}
	}()
	port := d.wait("port")
	if out, err := d.chirp(port, "whoami"); err != nil || out != "unix:boss\n" {
		t.Errorf("%v: %s", err, out)
	}
	// The port is told before root is given up, answers come after it.
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil || !bytes.Contains(status, []byte("Uid:\t65534\t65534\t65534\t65534")) || !regexp.MustCompile(`Groups:\t65534 \n`).Match(status) {
		t.Errorf("%v: %s", err, status)
	}
	if out, err := d.chirp(port, "mkdir", "/d"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if err := os.WriteFile(d.path("f"), []byte("content"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := d.chirp(port, "put", "f", "/d/f"); err != nil || d.wait("root/d/f") != "content" {
		t.Errorf("%v: %s", err, out)
	}
	var st syscall.Stat_t
	if err := syscall.Stat(d.path("root/d"), &st); err != nil || st.Uid != 65534 {
		t.Errorf("made by %d (%v)", st.Uid, err)
	}
	first, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := first.Write([]byte("no_method\n")); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 3)
	if _, err := first.Read(answer); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	_ = second.SetDeadline(time.Now().Add(20 * time.Second))
	if n, err := second.Read(answer); n > 0 || err == nil || os.IsTimeout(err) {
		t.Errorf("one client too many is served: %d, %v", n, err)
	}
}

// TestChirpServerEndsWithParent ends when a shell that started it is killed.
func TestChirpServerEndsWithParent(t *testing.T) {
	d := newDropIn(t)
	cmd := d.command()
	cmd = &exec.Cmd{Path: "/bin/sh", Dir: d.dir, Env: cmd.Env, Args: []string{"sh", "-c", d.program + " -r root -Z port -I 127.0.0.1 -E -B pid & wait"}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(d.wait("pid"))
	if err != nil {
		t.Fatal(err)
	}
	d.wait("port")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for deadline := time.Now().Add(20 * time.Second); !isZombie(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("it goes on without its parent")
		}
	}
}
