package private

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestExitCodes: the command's own code passes through (case 38).
func TestExitCodes(t *testing.T) {
	eachUser(t, func(t *testing.T, v variant) {
		for _, code := range []int{0, 1, 2, 126, 127, 255} {
			o := job{plan: script("exit $1", fmt.Sprint(code))}.of(v).run(t)
			o.expect(t, code, "")
			if !o.Result.Started || o.Result.Signal != 0 {
				t.Errorf("result %+v", o.Result)
			}
		}
	})
}

// TestKilledBySignal: so does the signal that killed it.
func TestKilledBySignal(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		for _, sig := range []int{9, 15} {
			o := job{plan: script("kill -$1 $$", fmt.Sprint(sig))}.of(v).run(t)
			if o.exit != 128+sig || int(o.Result.Signal) != sig || !o.Result.Started {
				t.Errorf("exit %d, result %+v, %s", o.exit, o.Result, o.Error)
			}
		}
	})
}

// TestSeesFiles: the file system is there, also as a place for programs and as
// a working directory, on one processor too; the machine is as it was.
func TestSeesFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		job{plan: script("cat " + where + "/hello; " + where + "/prog a b")}.of(v).run(t).
			expect(t, 0, "hello, world\nprog a b\n")

		p := planFor(where+"/prog", "two words", "")
		p.Dir = where
		job{plan: p, env: []string{"GOMAXPROCS=1", "GOGC=1"}}.of(v).run(t).expect(t, 0, "prog two words \n")

		p = planFor("prog", "a")
		p.Mounts[0].Where = "/chirp/n1" // a path with a colon cannot stand in PATH
		p.Env = []string{"PATH=/nonexistent:/chirp/n1:/bin"}
		job{plan: p}.of(v).run(t).expect(t, 0, "prog a\n")
	})
}

// TestMachine: the top level looks as before, links included, and the working
// directory is kept.
func TestMachine(t *testing.T) {
	list := "for f in /* /.[!.]*; do case $f in /chirp|/proc|/lost+found) continue;; esac; stat -c '%N %F %a' $f; done; pwd; ls -d /proc/self; touch /tmp/. && echo >/dev/null && echo ok"
	for _, f := range []string{"/bin/sh", "/usr/bin/stat"} {
		if _, err := os.Stat(f); err != nil {
			t.Skip(err)
		}
	}
	eachWay(t, func(t *testing.T, v variant) {
		dir := openDir(t)
		cmd := exec.Command("sh", "-c", list)
		cmd.Dir = dir
		want, err := cmd.Output()
		check(t, err)
		j := job{plan: script(list), dir: dir}
		if v.user { // touch fails as it is nobody's
			want = bytes.TrimSuffix(want, []byte("ok\n"))
			j.plan = script(list + " || true")
		}
		o := j.of(v).run(t)
		o.stdout = strings.TrimSuffix(o.stdout, map[bool]string{true: "ok\n"}[v.user])
		o.expect(t, 0, string(want))
	})
}

// TestRootReadOnly: what would be lost is refused.
func TestRootReadOnly(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		o := job{plan: script("mkdir /new || mkdir /chirp/new || echo >" + where + "/data && echo done")}.of(v).run(t)
		o.expect(t, 0, "done\n")
		if strings.Count(o.stderr, "Read-only file system") != 2 {
			t.Errorf("standard error %q", o.stderr)
		}
		p := script("echo x >" + where + "/data")
		p.Mounts[0].ReadOnly = true
		if o := (job{plan: p}).of(v).run(t); o.exit == 0 || !strings.Contains(o.stderr, "Read-only file system") {
			t.Errorf("exit %d, standard error %q", o.exit, o.stderr)
		}
	})
}

// TestStandardFiles: every byte passes (case 39), and no other descriptor does.
func TestStandardFiles(t *testing.T) {
	input := make([]byte, 3<<20)
	rnd := rand.NewChaCha8([32]byte{1})
	_, _ = rnd.Read(input)
	eachWay(t, func(t *testing.T, v variant) {
		o := job{plan: planFor("cat"), stdin: bytes.NewReader(input)}.of(v).run(t)
		if o.stdout != string(input) || o.exit != 0 {
			t.Errorf("exit %d, %d bytes of %d came back", o.exit, len(o.stdout), len(input))
		}
		leak, err := os.Open("/etc/passwd")
		check(t, err)
		defer leak.Close()
		job{plan: script("ls /proc/$$/fd; echo err >&2"), extra: []*os.File{leak, leak}}.of(v).run(t).
			expectFiles(t)
	})
}

// expectFiles checks the list that TestStandardFiles makes.
func (o outcome) expectFiles(t *testing.T) {
	t.Helper()
	if o.stdout != "0\n1\n2\n" || o.stderr != "err\n" {
		t.Errorf("descriptors %q, standard error %q", o.stdout, o.stderr)
	}
}

// TestExecFailures: what a shell would return, and not mistaken for a failure
// of ours.
func TestExecFailures(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	for name, text := range map[string]string{
		"plain": "#!/bin/sh\n", "noexec": "#!/bin/sh\n", "nointerp": "#!/no/such\n", "script": "echo script \"$@\"\n", "binary": "\x00\x01junk",
	} {
		check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	check(t, os.Chmod(filepath.Join(dir, "noexec"), 0o644))
	for _, c := range []struct {
		program string
		exit    int
		stdout  string
	}{
		{"no-such-program", 127, ""},
		{"", 127, ""},
		{dir + "/missing", 127, ""},
		{dir + "/plain/below", 127, ""},
		{dir + "/plain", 0, ""},
		{dir + "/noexec", 126, ""},
		{"noexec", 126, ""},
		{dir, 126, ""},
		{dir + "/nointerp", 126, ""},
		{dir + "/binary", 126, ""},
		{dir + "/script", 0, "script a\n"},
	} {
		t.Run(filepath.Base(c.program), func(t *testing.T) {
			t.Parallel()
			p := planFor(c.program, "a")
			p.Env = []string{"PATH=/usr/bin:" + dir}
			o := job{plan: p, user: true}.run(t)
			if o.exit != c.exit || o.stdout != c.stdout {
				t.Errorf("exit %d, output %q, error %q, want %d, %q", o.exit, o.stdout, o.Error, c.exit, c.stdout)
			}
			if failed := c.exit != 0; failed == o.Result.Started || failed && o.Code != c.exit {
				t.Errorf("result %+v, error %q with code %d", o.Result, o.Error, o.Code)
			}
		})
	}
	p := planFor("true")
	p.Dir = dir + "/missing"
	job{plan: p, user: true}.run(t).expectError(t, "", "working directory")
}
