package fusefs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// mountAndWait mounts args[1] of the server args[0] on args[2] in the way args[3], says
// how, and unmounts when standard input ends, or exits with what is in args[4].
func mountAndWait(args []string) error {
	c := client.New(args[0], client.Options{Timeout: 10 * time.Second})
	defer c.Close()
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	f, err := New(c, Options{Path: args[1], Log: log})
	if err != nil {
		return err
	}
	m, err := Mount(context.Background(), f, args[2], MountOptions{Way: Way(args[3])})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	over := make(chan error, 1)
	go func() { over <- m.Wait() }()
	input := make(chan struct{})
	go func() {
		defer close(input)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	select {
	case err := <-over:
		return err
	case <-input:
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return m.Close(ctx)
}

// program is a mount that another process serves.
type program struct {
	*exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	said  strings.Builder
}

// serveApart starts a program that mounts, as the given user, and waits until it is
// ready.
func serveApart(t *testing.T, cmd *exec.Cmd) (*program, error) {
	t.Helper()
	p := &program{Cmd: cmd}
	p.in, _ = cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	for p.lines.Scan() {
		if p.lines.Text() == "ready" {
			return p, nil
		}
		fmt.Fprintln(&p.said, p.lines.Text())
	}
	return p, cmd.Wait()
}

// end lets the program unmount.
func (p *program) end() error {
	p.in.Close()
	for p.lines.Scan() {
		fmt.Fprintln(&p.said, p.lines.Text())
	}
	return p.Wait()
}

func isMounted(t testing.TB, dir string) bool {
	t.Helper()
	list, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(list) > 0
}

func tempMountpoint(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "fusefs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH)
		_ = os.Remove(dir)
	})
	return dir
}

// TestWays mounts in each way, as root and as an ordinary user, and looks at the log.
func TestWays(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be two users")
	}
	p := chirptest.Server(t, func(c *chirpd.Config) { c.DefaultACL = "unix:* rwl\n" })
	write(t, filepath.Join(p.Root, "f"), "content")
	exe := public(t)
	for _, c := range []struct {
		name string
		user uint32
		way  Way
		want Way
	}{
		{"root, any way", 0, Auto, Direct},
		{"root with fusermount3", 0, Fusermount, Fusermount},
		{"nobody, any way", 65534, Auto, Fusermount},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == Fusermount {
				need(t, "fusermount3")
			}
			dir := tempMountpoint(t)
			if err := os.Chown(dir, int(c.user), -1); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(exe, p.Addr, "/", dir, string(c.way))
			cmd.Env = helperEnviron("mount")
			cmd.Dir = "/"
			as := &syscall.Credential{Uid: c.user, Gid: c.user}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as}
			prog, err := serveApart(t, cmd)
			if err != nil {
				t.Fatalf("%v: %s", err, prog.said.String())
			}
			if !strings.Contains(prog.said.String(), fmt.Sprintf("way=%s", c.want)) {
				t.Errorf("the log does not name the way %s:\n%s", c.want, prog.said.String())
			}
			cat := exec.Command("sh", "-c", `id -u > "$0/new"; cat "$0/f"`, dir)
			cat.SysProcAttr = &syscall.SysProcAttr{Credential: as}
			if out, err := cat.CombinedOutput(); err != nil || string(out) != "content" {
				t.Errorf("%v: %s", err, out)
			}
			if err := prog.end(); err != nil {
				t.Errorf("%v: %s", err, prog.said.String())
			}
			if isMounted(t, dir) {
				t.Error("it is still mounted")
			}
		})
	}
}

// TestNoWay is case 35: where no way works the error says why, and what can be done.
func TestNoWay(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can take away what mounting needs")
	}
	p := chirptest.Server(t, func(c *chirpd.Config) { c.DefaultACL = "unix:* rwl\n" })
	exe := public(t)
	for _, c := range []struct{ name, setup, want string }{
		{"no fusermount3", `mount -t tmpfs none /usr/bin; `, "fusermount3 is neither in PATH nor in"},
		{"no /dev/fuse", `mount -t tmpfs none /dev; `, "/dev/fuse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, "unshare", "setpriv")
			dir := tempMountpoint(t)
			script := `cp /usr/bin/setpriv "$0/../setpriv.$$"; set -- "$0/../setpriv.$$" "$@"; ` + c.setup +
				`"$1" --reuid 65534 --clear-groups "$2" "$3" / "$0" ""; code=$?; exec 2>/dev/null; exit $code`
			cmd := exec.Command("unshare", "-m", "sh", "-c", script, dir, exe, p.Addr)
			cmd.Env = helperEnviron("mount")
			out, err := cmd.CombinedOutput()
			leftover, _ := filepath.Glob(filepath.Dir(dir) + "/setpriv.*")
			for _, f := range leftover {
				_ = os.Remove(f)
			}
			if err == nil || !strings.Contains(string(out), c.want) || !strings.Contains(string(out), "skeletonkey exec") {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func TestNoWayError(t *testing.T) {
	m := near(t)
	f, err := New(m.client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Mount(t.Context(), f, tempMountpoint(t), MountOptions{Way: "magic"})
	var no *NoWayError
	if !errors.As(err, &no) || len(no.Reasons) != 1 {
		t.Errorf("%v", err)
	}
	if _, err := Mount(t.Context(), f, "/nonexistent", MountOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("on a missing directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	if _, err := Mount(t.Context(), f, file, MountOptions{}); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("on a file: %v", err)
	}
}

// TestFindFusermount is case 34: the mountpoint in PATH is passed by, be it spelt in
// another way, and so are relative directories.
func TestFindFusermount(t *testing.T) {
	fake := func(dir string) string {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "fusermount3")
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	top := t.TempDir()
	inside, outside := filepath.Join(top, "mnt"), filepath.Join(top, "mnt-not")
	fake(inside)
	fake(filepath.Join(inside, "bin"))
	want := fake(outside)
	for _, path := range []string{
		inside + ":" + outside,
		inside + "/bin:" + inside + "/../mnt:" + outside,
		"." + ":mnt:" + outside,
		":" + outside,
	} {
		if got, err := findFusermount(path, inside); err != nil || got != want {
			t.Errorf("PATH=%s: %q, %v; want %q", path, got, err, want)
		}
	}
}

// TestMountpointInPath is case 34 with a real mount: PATH begins with the mount.
func TestMountpointInPath(t *testing.T) {
	need(t, "fusermount3")
	p := chirptest.Server(t)
	dir := tempMountpoint(t)
	cmd := helper(t, "mount", p.Addr, "/", dir, string(Fusermount))
	cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	prog, err := serveApart(t, cmd)
	if err != nil {
		t.Fatalf("%v: %s", err, prog.said.String())
	}
	if err := prog.end(); err != nil {
		t.Errorf("%v: %s", err, prog.said.String())
	}
}
