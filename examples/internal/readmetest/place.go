package readmetest

import (
	"bytes"
	"context"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is the ordinary user's number where the test runs as root.
const nobody = 65534

// Ports are those that stand in every example's README.md and job.ini: of the data, and
// of what nodes fetch. In a test, free ones take their place.
var Ports = [2]string{"9094", "9095"}

// Place is a machine of an ordinary user: a home, the sources, and the program in PATH.
type Place struct {
	Home string // absolute

	t     *testing.T
	dir   string // holds all of it
	env   []string
	ports *strings.Replacer
	ctx   context.Context // against a job or a server that hangs
}

// New makes a place for the example in the working directory, which the end of the test
// removes. Where an ordinary user cannot mount, or nothing can fetch, the test is skipped,
// or fails with SKELETONKEY_REQUIRE_PEERS=1.
func New(t *testing.T) *Place {
	t.Helper()
	needNode(t)
	dir, err := os.MkdirTemp("", "readme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p := &Place{t: t, dir: dir, Home: filepath.Join(dir, "home"), ports: freePorts(t)}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	p.ctx = ctx
	p.must(os.Chmod(dir, 0o755))
	for _, name := range []string{"home", "bin", "tmp"} {
		p.must(os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	p.build()
	p.copyExample()
	p.own(p.Home, filepath.Join(dir, "tmp"), filepath.Join(dir, "src"))
	p.env = []string{"PATH=" + dir + "/bin:/usr/bin:/bin", "HOME=" + p.Home, "TMPDIR=" + dir + "/tmp"}
	return p
}

// needNode skips, or fails, where this machine is no node that a job could run on.
func needNode(t *testing.T) {
	t.Helper()
	info, err := os.Stat("/dev/fuse")
	if err != nil || info.Mode().Perm()&0o006 != 0o006 {
		missing(t, "/dev/fuse is not open to everybody: %v, %v", info, err)
	}
	for _, fetcher := range []string{"curl", "wget", "python3"} {
		if _, err := exec.LookPath(fetcher); err == nil {
			return
		}
	}
	missing(t, "none of curl, wget and python3 is there")
}

func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// freePorts holds both until both are known, so that they differ.
func freePorts(t *testing.T) *strings.Replacer {
	t.Helper()
	var pairs []string
	for _, port := range Ports {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		_, free, _ := net.SplitHostPort(ln.Addr().String())
		pairs = append(pairs, port, free)
	}
	return strings.NewReplacer(pairs...)
}

func (p *Place) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *Place) build() {
	p.t.Helper()
	build := exec.Command("go", "build", "-o", filepath.Join(p.dir, "bin", "skeletonkey"), "skeletonkey/cmd/skeletonkey")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		p.t.Fatalf("%v\n%s", err, out)
	}
}

// copyExample is for checkouts that an ordinary user cannot read, and for the ports.
func (p *Place) copyExample() {
	p.t.Helper()
	here, err := os.Getwd()
	p.must(err)
	dir := filepath.Join(p.dir, "src", "examples", filepath.Base(here))
	p.must(os.CopyFS(dir, os.DirFS(".")))
	job := filepath.Join(dir, "job.ini")
	text, err := os.ReadFile(job)
	p.must(err)
	p.must(os.WriteFile(job, []byte(p.ports.Replace(string(text))), 0o644))
}

// own gives trees to the ordinary user.
func (p *Place) own(trees ...string) {
	p.t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, tree := range trees {
		p.must(filepath.WalkDir(tree, func(name string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(name, nobody, nobody)
		}))
	}
}

// Give copies a directory into the place, for the ordinary user, and names the copy in
// the environment of every block that is run after it.
func (p *Place) Give(variable, dir string) {
	p.t.Helper()
	to := filepath.Join(p.dir, variable)
	p.must(os.CopyFS(to, os.DirFS(dir)))
	p.own(to)
	p.env = append(p.env, variable+"="+to)
}

// Run does what a section of README.md says. It has to say at least once what comes out.
func (p *Place) Run(section string) {
	p.t.Helper()
	readme, err := os.ReadFile("README.md")
	p.must(err)
	list, err := steps(string(readme), section)
	p.must(err)
	var said string
	compared := false
	for _, s := range list {
		switch s.kind {
		case serve:
			p.serve(s)
		case run:
			said = p.run(s)
		case says:
			compared = true
			if !endsWith(said, s.text) {
				p.t.Errorf("README.md:%d says that this comes out:\n%s\nit was:\n%s", s.line, s.text, said)
			}
		}
	}
	if !compared {
		p.t.Errorf("section %q of README.md does not say what comes out", section)
	}
	left, err := os.ReadDir(filepath.Join(p.dir, "tmp"))
	p.must(err)
	for _, entry := range left {
		p.t.Errorf("left in TMPDIR: %s", entry.Name())
	}
}

// command is a text for the shell of the ordinary user.
func (p *Place) command(text string) *exec.Cmd {
	cmd := exec.CommandContext(p.ctx, "sh", "-euc", p.ports.Replace(text))
	cmd.Dir, cmd.Env = filepath.Join(p.dir, "src"), p.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run returns the standard output.
func (p *Place) run(s step) string {
	p.t.Helper()
	cmd := p.command(s.text)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("README.md:%d: %v\n%s\n%s%s", s.line, err, s.text, out, &errs)
	}
	return string(out)
}

// serve returns when the ports of the block can be reached.
func (p *Place) serve(s step) {
	p.t.Helper()
	cmd := p.command("exec " + s.text)
	var log bytes.Buffer
	cmd.Stderr = &log
	p.must(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; err != nil {
			p.t.Errorf("README.md:%d: the server: %v\n%s", s.line, err, &log)
		}
	})
	for _, port := range Ports {
		for strings.Contains(s.text, port) {
			c, err := net.Dial("tcp", "127.0.0.1:"+p.ports.Replace(port))
			if err == nil {
				c.Close()
				break
			}
			select {
			case err := <-ended:
				ended <- err
				p.t.Fatalf("README.md:%d: the server ended before it could be reached", s.line)
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

// Shared returns the path of a file or directory that is not part of the project: below
// SKELETONKEY_SHARED, else beside the top directory of the sources. Without it the test
// is skipped.
func Shared(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("SKELETONKEY_SHARED")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared")
	}
	path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s of the shared files (SKELETONKEY_SHARED): %v", name, err)
	}
	return path
}
