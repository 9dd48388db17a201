package run

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/generator/job"
)

// TestWholeJob: an application reads and writes data, below CHIRP_MOUNT and by the
// links, and its results are in the export afterwards.
func TestWholeJob(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(
			`cat in/data "$CHIRP_MOUNT/in/data"`,
			`echo "$@" >out/args`,
			`echo deep >"$CHIRP_MOUNT/out/by-mount"`,
			`(: >in/new) 2>/dev/null && echo wrote where it may only read`,
			`echo "$CHIRP_MOUNT $SKELETONKEY_SERVER $PWD" | sed "s,$SKELETONKEY_SCRATCH,WORK,"`,
			`ls "$CHIRP_MOUNT"`,
		))
		n.user = user
		spec := n.dataJob()
		spec.Job.Application.Arguments, spec.Args = []string{"a", "b"}, []string{"c"}
		n.run(spec, how{}).expect(t, 0, "input\ninput\n/chirp/"+n.peer.Addr+" "+n.peer.Addr+" WORK\nin\nout\n")
		n.holds("/out/args", "a b c\n")
		n.holds("/out/by-mount", "deep\n")
	})
}

// TestRealServer: the same on Debian's chirp_server.
func TestRealServer(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`cat in/data && cp in/data out/copy && echo more >>out/copy && mv out/copy out/moved && ls out`))
	n.peer = chirptest.RealServer(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := client.New(n.peer.Addr, client.Options{})
	defer c.Close()
	check(t, c.Mkdir(ctx, "/in", 0o755))
	check(t, c.Mkdir(ctx, "/out", 0o755))
	check(t, c.Putfile(ctx, "/in/data", 0o644, 6, strings.NewReader("input\n")))
	n.run(n.dataJob(), how{}).expect(t, 0, "input\nmoved\n")
	n.holds("/out/moved", "input\nmore\n")
}

// TestNestedDirectories: directories in one another are one file system, in which
// each has its own rights.
func TestNestedDirectories(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(
		`echo x >deep/new || exit 3`,
		`mv deep/new deep/moved && cat top/a/deep/moved`,
		`(: >top/no) 2>/dev/null && exit 4`,
		`mkdir "$CHIRP_MOUNT/no" 2>/dev/null && exit 5`,
		`exit 0`,
	))
	n.dataJob()
	check(t, os.MkdirAll(n.peer.Root+"/in/a/deep", 0o755))
	spec := n.dataJob(job.Dir{Path: "/in", Name: "top"}, job.Dir{Path: "/in/a/deep", Name: "deep", Write: true})
	n.run(spec, how{}).expect(t, 0, "x\n")
	n.holds("/in/a/deep/moved", "x\n")
}

// TestArguments is case 36: the application's arguments are those of the job,
// whatever they hold.
func TestArguments(t *testing.T) {
	t.Parallel()
	args := []string{"two words", "a;touch X", "$(id)", "", "one\nline", "-d", "--", "*", "\\", `'"`, "\xff", "%s"}
	n := newNode(t, script(`printf '%s\0' "$#" "$@"`, `ls`))
	spec := helperSpec{Job: n.job(args[:6]...), Args: args[6:]}
	// JSON, by which the test hands over the job, cannot carry this one.
	spec.Args[4] = "x"
	args[10] = "x"
	n.run(spec, how{}).expect(t, 0, strconv.Itoa(len(args))+"\x00"+strings.Join(args, "\x00")+"\x00app.sh\n")
}

// TestExitCodes is case 38: the application's exit codes pass through.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`case $1 in -*) kill "$1" $$;; esac; exit "$1"`))
	for arg, want := range map[string]int{
		"0": 0, "1": 1, "2": 2, "126": 126, "127": 127, "255": 255, "-9": 137,
	} {
		n.run(helperSpec{Job: n.job(arg)}, how{}).expect(t, want, "")
	}
}

// TestStandardInput is case 39: every byte of it reaches the application, and only
// the application reads it.
func TestStandardInput(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(`cat >out/copy && echo done`))
		n.user = user
		text := make([]byte, 3<<20+17)
		rng := rand.NewChaCha8([32]byte{1})
		_, _ = rng.Read(text)
		n.run(n.dataJob(), how{stdin: bytes.NewReader(text)}).expect(t, 0, "done\n")
		got, err := os.ReadFile(n.peer.Root + "/out/copy")
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%d bytes, %v, want %d", len(got), err, len(text))
		}
	})
}

// TestPrograms: where the program is looked for, and what is said when it is not
// there or cannot be executed.
func TestPrograms(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{
		"sub/prog":    "#!/bin/sh\necho sub \"$@\"\n",
		"plain":       "echo plain \"$@\"\n", // without #!: a shell runs it
		"text.txt":    "#!/bin/sh\necho text\n",
		"interpreter": "#!/nonexistent\n",
		"echo":        "#!/bin/sh\necho ours\n",
	})
	spec := n.dataJob()
	check(t, os.WriteFile(n.peer.Root+"/in/prog", []byte("#!/bin/sh\necho export\n"), 0o755))
	for _, c := range []struct {
		script string
		exit   int
		stdout string
	}{
		{"sub/prog", 0, "sub x\n"},
		{"./sub//prog", 0, "sub x\n"},
		{"plain", 0, "plain x\n"},
		{"echo", 0, "ours\n"},      // before the one in PATH
		{"printf", 0, "x"},         // of PATH
		{"/bin/echo", 0, "x\n"},    // of the node
		{"text.txt", 126, ""},      // has no x bit
		{"interpreter", 126, ""},   // its interpreter is missing
		{"sub", 126, ""},           // a directory
		{"missing", 127, ""},       //
		{"sub/missing", 127, ""},   //
		{"/bin/missing", 127, ""},  //
		{"text.txt/x", 127, ""},    // below a file
		{"in/prog", 0, "export\n"}, // lies in the export, by its link
	} {
		spec.Job.Application.Script, spec.Args = c.script, []string{"x"}
		res := n.run(spec, how{})
		res.expect(t, c.exit, c.stdout)
		if c.exit != 0 && !strings.Contains(res.error, filepath.Base(c.script)) {
			t.Errorf("%s: error %q", c.script, res.error)
		}
	}
}

// TestWithoutArchive: a job that brings nothing runs what the node has.
func TestWithoutArchive(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	spec := helperSpec{Job: n.job("-c", "ls -A; echo ${CHIRP_MOUNT-unset}")}
	spec.Job.Application.Script, spec.Job.Application.Location, spec.Job.Application.SHA256 = "sh", "", ""
	n.run(spec, how{env: []string{"CHIRP_MOUNT=/old"}}).expect(t, 0, "unset\n")
}

// TestLocalArchive: a path on the node counts from where the job was started; with a
// checksum and without.
func TestLocalArchive(t *testing.T) {
	t.Parallel()
	n := newNode(t, script("echo local"))
	check(t, os.WriteFile(n.dir+"/app.tar", n.app, 0o644))
	for i, location := range []string{"app.tar", "./app.tar", n.dir + "/app.tar", "file://" + n.dir + "/app.tar"} {
		spec := helperSpec{Job: n.job()}
		spec.Job.Application.Location = location
		if i%2 == 0 {
			spec.Job.Application.SHA256 = ""
		}
		n.run(spec, how{dir: n.dir}).expect(t, 0, "local\n")
	}
	if !exists(n.dir + "/app.tar") {
		t.Error("the archive is gone")
	}
	spec := helperSpec{Job: n.job()}
	spec.Job.Application.Location, spec.Job.Application.SHA256 = "missing.tar", ""
	n.run(spec, how{dir: n.dir}).expectError(t, job.ExitBadDownload, n.dir+"/missing.tar")
}
