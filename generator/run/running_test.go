package run

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// line returns the next line of standard output.
func (r *running) line() string {
	r.t.Helper()
	s, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatalf("read a line: %v; got %q, standard error %q, log:\n%s%s", err, s, r.stderr, r.log(), r.file("error"))
	}
	return strings.TrimSuffix(s, "\n")
}

// file returns one of the files of the helper.
func (r *running) file(name string) string {
	text, _ := os.ReadFile(r.dir + "/" + name)
	return string(text)
}

// log returns the log so far.
func (r *running) log() string { return r.file("log") }

// logged waits until the log says something.
func (r *running) logged(text string) {
	r.t.Helper()
	eventually(r.t, func() bool { return strings.Contains(r.log(), text) }, func() string {
		return "the log never said " + text + ":\n" + r.log()
	})
}

// eventually waits until something is so, for at most fifteen seconds.
func eventually(t *testing.T, so func() bool, otherwise func() string) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise())
		}
	}
}

// signal sends a signal to the program alone.
func (r *running) signal(s syscall.Signal) {
	r.t.Helper()
	check(r.t, r.cmd.Process.Signal(s))
}

// end waits for the program's end.
func (r *running) end() result {
	r.t.Helper()
	rest, err := io.ReadAll(r.out)
	check(r.t, err)
	_ = r.cmd.Wait()
	r.gone = true
	code := r.cmd.ProcessState.ExitCode()
	if st := r.cmd.ProcessState.Sys().(syscall.WaitStatus); st.Signaled() {
		code = -int(st.Signal())
	}
	return result{code, string(rest), r.stderr.String(), r.log(), r.file("error")}
}

// wait waits for the program's end, and checks that it left nothing.
func (r *running) wait() result {
	r.t.Helper()
	res := r.end()
	if left := r.left(); left != "" {
		r.t.Errorf("left: %s; log:\n%s", left, res.log)
	}
	return res
}

// left tells what the job has on the node: mounts, processes, files.
func (r *running) left() string {
	var left []string
	for _, pid := range r.processes() {
		args, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		left = append(left, "process "+strings.ReplaceAll(string(args), "\x00", " "))
	}
	names, err := os.ReadDir(r.n.base)
	check(r.t, err)
	for _, e := range names {
		left = append(left, "file "+e.Name())
	}
	_, err = r.mounts.Seek(0, io.SeekStart)
	check(r.t, err)
	mounts, err := io.ReadAll(r.mounts)
	check(r.t, err)
	for line := range strings.Lines(string(mounts)) {
		where := strings.Fields(line)[1]
		if strings.HasPrefix(where, r.n.base+"/") || strings.HasPrefix(where, "/chirp") || strings.HasPrefix(where, "/cvmfs/"+repoName) {
			left = append(left, "mount "+where)
		}
	}
	return strings.Join(left, ", ")
}

// eventuallyNothing waits until nothing is left.
func (r *running) eventuallyNothing() {
	r.t.Helper()
	eventually(r.t, func() bool { return r.left() == "" }, func() string { return "left: " + r.left() + "\n" + r.log() })
}

// processes lists the job's processes, by the token in their environment, zombies
// apart.
func (r *running) processes() []int {
	names, err := readNames("/proc")
	check(r.t, err)
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ")
		if err == nil && slices.Contains(strings.Split(string(env), "\x00"), r.token) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// process waits for the process with this argument, and returns its number.
func (r *running) process(arg string) (found int) {
	r.t.Helper()
	eventually(r.t, func() bool {
		for _, pid := range r.processes() {
			args, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
			if slices.Contains(strings.Split(string(args), "\x00"), arg) {
				found = pid
			}
		}
		return found != 0
	}, func() string { return "no process with the argument " + arg + ":\n" + r.log() })
	return found
}

// expect checks the end of a job.
func (res result) expect(t *testing.T, exit int, stdout string) {
	t.Helper()
	if res.exit != exit || res.stdout != stdout {
		t.Errorf("exit %d, output %q, want %d and %q; error %q, standard error %q, log:\n%s",
			res.exit, res.stdout, exit, stdout, res.error, res.stderr, res.log)
	}
}

// expectError checks a failure of ours.
func (res result) expectError(t *testing.T, exit int, texts ...string) {
	t.Helper()
	good := res.exit == exit && res.error != ""
	for _, text := range texts {
		good = good && strings.Contains(res.error, text)
	}
	if !good {
		t.Errorf("exit %d, want %d with %q; error %q, output %q, standard error %q, log:\n%s",
			res.exit, exit, texts, res.error, res.stdout, res.stderr, res.log)
	}
}

// users runs a test as root and as an ordinary user, or as who we are.
func users(t *testing.T, f func(t *testing.T, user bool)) {
	t.Run("user", func(t *testing.T) {
		t.Parallel()
		f(t, true)
	})
	if os.Geteuid() == 0 {
		t.Run("root", func(t *testing.T) {
			t.Parallel()
			f(t, false)
		})
	}
}
