package run

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/generator/job"
)

// nobody is the ordinary user of tests that run as root.
const nobody = 65534

// tokens numbers the jobs, so that their processes can be found.
var tokens atomic.Int32

// node is a machine on which a test runs its jobs: a place for scratch directories,
// a web server with an application, and a data server.
type node struct {
	t    *testing.T
	dir  string // open to everybody
	base string // TMPDIR of the jobs
	user bool   // jobs run as an ordinary user

	app  []byte // what the web server has; see pack
	web  *httptest.Server
	gate chan struct{} // if not nil, the web server stops in the middle of app until it is closed
	half chan struct{} // closed when it has stopped
	peer *chirptest.Peer
}

// newNode makes a machine whose web server has an application with these files; the
// name decides whether one is executable: all are but those that end in .txt.
func newNode(t *testing.T, files map[string]string) *node {
	t.Helper()
	n := &node{t: t, dir: openDir(t), app: pack(t, files)}
	n.base = n.dir + "/tmp"
	check(t, os.Mkdir(n.base, 0o777))
	check(t, os.Chmod(n.base, 0o777|os.ModeSticky))
	n.web = httptest.NewServer(http.HandlerFunc(n.serve))
	t.Cleanup(n.web.Close)
	return n
}

// serve sends the application, perhaps with a stop in the middle.
func (n *node) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", strconv.Itoa(len(n.app)))
	if n.gate != nil {
		_, _ = w.Write(n.app[:len(n.app)/2])
		_ = http.NewResponseController(w).Flush()
		close(n.half)
		select {
		case <-n.gate:
		case <-r.Context().Done():
			return
		}
		_, _ = w.Write(n.app[len(n.app)/2:])
		return
	}
	_, _ = w.Write(n.app)
}

// stops makes the web server stop in the middle of the application, once.
func (n *node) stops() {
	n.gate, n.half = make(chan struct{}), make(chan struct{})
}

// pack makes a tar archive.
func pack(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, text := range files {
		mode := int64(0o755)
		if strings.HasSuffix(name, ".txt") {
			mode = 0o644
		}
		check(t, w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(text))}))
		_, err := io.WriteString(w, text)
		check(t, err)
	}
	check(t, w.Close())
	return buf.Bytes()
}

// script makes an application of one shell script, app.sh.
func script(lines ...string) map[string]string {
	return map[string]string{"app.sh": "#!/bin/sh\n" + strings.Join(lines, "\n") + "\n"}
}

// job returns a job that runs app.sh of the application.
func (n *node) job(args ...string) *job.Job {
	sum := sha256.Sum256(n.app)
	return &job.Job{
		Version: job.Version, Name: "test", Ticket: job.Ticket{Seconds: 3600},
		Application: job.Application{
			Script: "app.sh", Location: n.web.URL + "/app.tar", SHA256: hex.EncodeToString(sum[:]), Arguments: args,
		},
	}
}

// serveData starts the data server, which exports /in with a file, and /out.
func (n *node) serveData() {
	n.t.Helper()
	if n.peer != nil {
		return
	}
	n.peer = chirptest.Server(n.t)
	check(n.t, os.Mkdir(n.peer.Root+"/in", 0o755))
	check(n.t, os.WriteFile(n.peer.Root+"/in/data", []byte("input\n"), 0o644))
	check(n.t, os.Mkdir(n.peer.Root+"/out", 0o755))
}

// dataJob returns a job that may use these directories, else read /in and write
// /out, and its ticket.
func (n *node) dataJob(dirs ...job.Dir) helperSpec {
	n.t.Helper()
	n.serveData()
	if dirs == nil {
		dirs = []job.Dir{{Path: "/in", Name: "in"}, {Path: "/out", Name: "out", Write: true}}
	}
	j := n.job()
	j.Server, j.Dirs = n.peer.Addr, dirs
	return n.ticket(j)
}

// key is that of all tickets: to make one takes long.
var key = sync.OnceValues(func() (*auth.Ticket, error) { return auth.NewTicket("", time.Time{}) })

// ticket gives a job the ticket that it needs.
func (n *node) ticket(j *job.Job) helperSpec {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	made, err := key()
	check(n.t, err)
	t := &auth.Ticket{Key: made.Key, Server: j.Server, Expires: time.Now().Add(time.Hour)}
	c := client.New(n.peer.Addr, client.Options{})
	defer c.Close()
	check(n.t, c.TicketRegister(ctx, "self", time.Hour, t.PublicPEM()))
	for _, d := range j.Dirs {
		check(n.t, c.TicketModify(ctx, t.Digest(), d.Path, d.Rights()))
	}
	j.Ticket.Digest, j.Ticket.Expires = t.Digest(), t.Expires.Unix()
	return helperSpec{Job: j, Ticket: string(t.Format())}
}

// how says how the program that runs a job is started.
type how struct {
	env    []string
	onlyMy bool // env is all of it, apart from what the test needs
	stdin  io.Reader
	dir    string
	before string // shell commands before
	group  bool   // in a process group of its own
	// ownMounts gives it a mount table of its own; needs root.
	ownMounts bool
	// noNamespaces: an ordinary user, on a machine that has none. Implies ownMounts.
	noNamespaces bool
}

// running is a job being run.
type running struct {
	t      *testing.T
	n      *node
	cmd    *osexec.Cmd
	mounts *os.File // the mount table that the program sees
	out    *bufio.Reader
	stderr *bytes.Buffer
	dir    string
	token  string
	gone   bool
}

// result is what became of it.
type result struct {
	exit                       int
	stdout, stderr, log, error string
}

// binaryDir holds what binary makes, until the tests end.
var binaryDir string

// binary is the test binary where every user can execute it.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "run-test-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	data, err := os.ReadFile("/proc/self/exe")
	file := filepath.Join(dir, "helper")
	if err == nil {
		err = os.WriteFile(file, data, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	return file, err
})

// openDir returns a directory that everybody may use.
func openDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		check(t, os.Chmod(d, 0o777))
	}
	return dir
}

// start starts a job.
func (n *node) start(spec helperSpec, h how) *running {
	t := n.t
	t.Helper()
	bin, err := binary()
	check(t, err)
	dir, err := os.MkdirTemp(n.dir, "job-")
	check(t, err)
	check(t, os.Chmod(dir, 0o777))
	spec.LogTo, spec.ErrorTo = dir+"/log", dir+"/error"
	text, err := json.Marshal(spec)
	check(t, err)
	check(t, os.WriteFile(dir+"/spec", text, 0o644))
	token := fmt.Sprintf("RUN_TEST_TOKEN=%d.%d", os.Getpid(), tokens.Add(1))

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	r := &running{t: t, n: n, stderr: &bytes.Buffer{}, dir: dir, token: token}
	exec := `exec "$0"`
	if h.noNamespaces {
		needRoot(t)
		h.before += "\necho 0 >/proc/sys/user/max_user_namespaces"
		exec = fmt.Sprintf(`exec setpriv --reuid %d --regid %d --clear-groups "$0"`, nobody, nobody)
	}
	r.cmd = osexec.CommandContext(ctx, "/bin/sh", "-c", "set -e\n"+h.before+"\n"+exec, bin)
	// The race detector would sleep for a second at the end of each process.
	r.cmd.Env = append([]string{helperEnv + "=" + dir + "/spec", token, "GORACE=atexit_sleep_ms=0"}, h.env...)
	if !h.onlyMy {
		r.cmd.Env = append(r.cmd.Env, "PATH=/usr/bin:/bin:/usr/sbin:/sbin", "TMPDIR="+n.base)
	}
	r.cmd.Dir, r.cmd.Stdin, r.cmd.Stderr = h.dir, h.stdin, r.stderr
	if h.dir == "" {
		r.cmd.Dir = dir
	}
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: h.group}
	if h.ownMounts {
		needRoot(t)
		r.cmd.SysProcAttr.Unshareflags = syscall.CLONE_NEWNS // makes all of it private, too
	}
	switch {
	case h.noNamespaces:
		all := []syscall.SysProcIDMap{{Size: nobody + 1}}
		r.cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		r.cmd.SysProcAttr.UidMappings, r.cmd.SysProcAttr.GidMappings = all, all
		r.cmd.SysProcAttr.GidMappingsEnableSetgroups = true
	case n.user && os.Geteuid() == 0:
		r.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	r.cmd.WaitDelay = 5 * time.Second
	stdout, err := r.cmd.StdoutPipe()
	check(t, err)
	r.out = bufio.NewReader(stdout)
	check(t, r.cmd.Start())
	r.mounts, err = os.Open(fmt.Sprintf("/proc/%d/mounts", r.cmd.Process.Pid))
	check(t, err)
	t.Cleanup(func() {
		r.mounts.Close()
		if !r.gone {
			_ = r.cmd.Process.Kill()
			_ = r.cmd.Wait()
		}
	})
	return r
}

// run is start and wait.
func (n *node) run(spec helperSpec, h how) result {
	n.t.Helper()
	return n.start(spec, h).wait()
}

// holds checks a file of the export.
func (n *node) holds(path, text string) {
	n.t.Helper()
	got, err := os.ReadFile(n.peer.Root + path)
	if err != nil || string(got) != text {
		n.t.Errorf("%s in the export: %q, %v, want %q", path, got, err, text)
	}
}
