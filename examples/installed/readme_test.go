package installed

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nobody = 65534

// blocks returns the indented parts of the README's steps.
func blocks(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, steps, ok := strings.Cut(string(text), "## Step by step")
	if !ok {
		t.Fatal("README.md has no steps")
	}
	inside := false
	for line := range strings.Lines(steps) {
		code, indented := strings.CutPrefix(line, "    ")
		if indented && !inside {
			list = append(list, "")
		}
		if inside = indented; inside {
			list[len(list)-1] += code
		}
	}
	return list
}

// place is a machine of an ordinary user: a home, and the program in PATH.
type place struct {
	t         *testing.T
	home, bin string
	ports     *strings.Replacer // those of the README to free ones
}

func newPlace(t *testing.T) *place {
	t.Helper()
	info, err := os.Stat("/dev/fuse")
	if err != nil || info.Mode().Perm()&0o006 != 0o006 {
		if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
			t.Fatalf("/dev/fuse is not open to everybody: %v, %v", info, err)
		}
		t.Skip("/dev/fuse is not open to everybody")
	}
	dir, err := os.MkdirTemp("", "installed")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &place{t: t, home: filepath.Join(dir, "home"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{p.home, p.bin} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(p.home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", filepath.Join(p.bin, "skeletonkey"), "skeletonkey/cmd/skeletonkey")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.ports = strings.NewReplacer("9094", freePort(t), "9095", freePort(t))
	p.copyExample(filepath.Join(dir, "src", "examples", "installed"))
	return p
}

func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// copyExample is for checkouts that an ordinary user cannot read.
func (p *place) copyExample(dir string) {
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		p.t.Fatal(err)
	}
	job := filepath.Join(dir, "job.ini")
	text, err := os.ReadFile(job)
	if err == nil {
		err = os.WriteFile(job, []byte(p.ports.Replace(string(text))), 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// command is a block of the README as the ordinary user.
func (p *place) command(ctx context.Context, block string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "sh", "-euc", p.ports.Replace(block))
	cmd.Dir = filepath.Join(filepath.Dir(p.home), "src")
	cmd.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "HOME=" + p.home, "TMPDIR=/tmp", "SKELETONKEY_CACHE=" + p.home + "/cache"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return cmd
}

// serve runs a block that is left running, until the test ends.
func (p *place) serve(block string) {
	cmd := p.command(context.Background(), "exec "+block)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			p.t.Errorf("the server: %v\n%s", err, &log)
		}
	})
	for _, port := range []string{"9094", "9095"} {
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			c, err := net.Dial("tcp", "127.0.0.1:"+p.ports.Replace(port))
			if err == nil {
				c.Close()
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatal(err)
			}
		}
	}
}

// TestReadme does what the README says, to the letter but for the ports.
func TestReadme(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // against a job that hangs
	defer cancel()
	var said string
	for _, block := range blocks(t) {
		switch {
		case strings.Contains(block, "skeletonkey serve "):
			p.serve(block)
		case !strings.Contains(block, "skeletonkey ") && !strings.Contains(block, "mkdir"):
			if !strings.HasSuffix(said, block) {
				t.Errorf("the README says that this comes out:\n%s\nit was:\n%s", block, said)
			}
		default:
			cmd := p.command(ctx, block)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s\n%s%s", err, block, out, &errs)
			}
			said = string(out)
		}
	}
	if said == "" {
		t.Error("nothing was run")
	}
	for _, version := range []string{"1.9.0", "1.10.0"} {
		if _, err := os.Stat(fmt.Sprintf("%s/installed/opt/wordcount/%s/count.sh", p.home, version)); err != nil {
			t.Error(err)
		}
	}
}
