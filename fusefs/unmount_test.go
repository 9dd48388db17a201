package fusefs

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

// TestUnmountByOthers removes mounts that another process serves: one that is alive, one
// whose server hangs, one whose program was killed.
func TestUnmountByOthers(t *testing.T) {
	for _, state := range []string{"alive", "paused", "killed"} {
		t.Run(state, func(t *testing.T) {
			p := chirptest.Server(t)
			r := chirptest.NewRelay(t, p.Addr)
			dir := tempMountpoint(t)
			prog, err := serveApart(t, helper(t, "mount", r.Addr, "/", dir, ""))
			if err != nil {
				t.Fatalf("%v: %s", err, prog.said.String())
			}
			switch state {
			case "paused":
				r.Pause()
			case "killed":
				_ = prog.Process.Kill()
				_ = prog.Wait()
				if err := unix.Access(dir, 0); err != unix.ENOTCONN {
					t.Errorf("a dead mount: %v, want ENOTCONN", err)
				}
			}
			if err := Unmount(dir); err != nil {
				t.Errorf("unmount: %v", err)
			}
			if isMounted(t, dir) {
				t.Error("it is still mounted")
			}
			if state != "killed" {
				for prog.lines.Scan() {
				}
				if err := prog.Wait(); err != nil {
					t.Errorf("the program that served: %v", err)
				}
			}
			if err := Unmount(dir); !errors.Is(err, ErrNotMounted) {
				t.Errorf("unmounted twice: %v", err)
			}
		})
	}
}

// TestUnmountFindsThroughLinks unmounts by a path that leads through a symbolic link.
func TestUnmountFindsThroughLinks(t *testing.T) {
	m := near(t)
	link := t.TempDir() + "/tmp"
	if err := os.Symlink("/tmp", link); err != nil {
		t.Fatal(err)
	}
	if err := Unmount(link + m.dir[len("/tmp"):]); err != nil {
		t.Error(err)
	}
	if err := m.Wait(); err != nil {
		t.Error(err)
	}
}

// TestMountThroughLink mounts on a directory that is named by a link to it.
func TestMountThroughLink(t *testing.T) {
	m := near(t)
	f, err := New(m.client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir, link := tempMountpoint(t), t.TempDir()+"/link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	again, err := Mount(t.Context(), f, link, MountOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !isMounted(t, dir) || again.minor < 0 {
		t.Errorf("mounted: %v, device %d", isMounted(t, dir), again.minor)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := again.Close(ctx); err != nil || isMounted(t, dir) {
		t.Errorf("close: %v; mounted: %v", err, isMounted(t, dir))
	}
}

// TestNotOurs refuses to unmount what is not a mount of this program.
func TestNotOurs(t *testing.T) {
	for _, dir := range []string{"/proc", t.TempDir(), "/nonexistent/dir"} {
		if err := Unmount(dir); err == nil {
			t.Errorf("%s was unmounted", dir)
		}
	}
}

// TestUnmountBusy takes away a mount that is in use: its name at once, the open file
// when the time is up.
func TestUnmountBusy(t *testing.T) {
	p := chirptest.Server(t)
	m := start(t, p, p.Addr)
	write(t, m.path("f"), "content")
	fd, err := unix.Open(m.path("f"), unix.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Unmount(ctx) }()
	waitFor(t, "unmounted", func() bool { return !isMounted(t, m.dir) })
	if _, err := unix.Write(fd, []byte("more")); err != nil {
		t.Errorf("write to the open file: %v", err)
	}
	unix.Close(fd)
	if err := <-ended; err != nil {
		t.Errorf("unmount: %v", err)
	}
	cancel()
	m.client.Close()
	if got := read(t, m.remote("f")); got != "moreent" {
		t.Errorf("the server has %q", got)
	}
}

// TestUnmountDeadServer ends a mount whose server does not answer, while a write and a
// stat wait for it: all end within the time given, and the loss is told.
func TestUnmountDeadServer(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(time.Hour))
	fd, err := unix.Open(m.path("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	root, err := unix.Open(m.dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	r.Pause()
	if _, err := unix.Write(fd, []byte("lost")); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- unix.Close(fd) }()
	asked := make(chan error)
	go func() {
		var st unix.Stat_t
		asked <- unix.Fstatat(root, "other", &st, 0)
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := m.Unmount(ctx); err == nil {
		t.Error("the loss is not told")
	}
	if err := <-closed; err == nil {
		t.Error("close of what could not be written succeeded")
	}
	if err := <-asked; err == nil || err == unix.ENOENT {
		t.Errorf("stat: %v", err)
	}
	if isMounted(t, m.dir) {
		t.Error("it is still mounted")
	}
	m.client.Close()
}

// TestUnmountDeadServerSync ends a mount whose server does not answer while a write of a
// file that was opened with O_SYNC waits for it.
func TestUnmountDeadServerSync(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(time.Hour))
	fd, err := unix.Open(m.path("f"), unix.O_WRONLY|unix.O_CREAT|unix.O_SYNC, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	h := m.fs.root.childNode("f").writing(nil)[0]
	r.Pause()
	wrote := make(chan error)
	go func() {
		_, err := unix.Write(fd, []byte("lost"))
		wrote <- err
	}()
	waitFor(t, "the write is under way", h.writer.Pending)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := m.Unmount(ctx); err == nil {
		t.Error("the loss is not told")
	}
	if err := <-wrote; err == nil {
		t.Error("write of what could not be written succeeded")
	}
	if !m.over() {
		t.Error("a request is still being dealt with")
	}
	unix.Close(fd)
	m.client.Close()
}

// TestUnmountWhileAwaited gives up a mount with data under way to a server that does not
// answer, while somebody else waits for its end without a limit: both return.
func TestUnmountWhileAwaited(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(time.Hour))
	fd, err := unix.Open(m.path("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	r.Pause()
	if _, err := unix.Write(fd, []byte("lost")); err != nil {
		t.Fatal(err)
	}
	waited := make(chan error)
	go func() { waited <- m.Wait() }()
	m.fs.abort()
	m.abortConnection()
	waitFor(t, "the connection has ended", m.over)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := m.Unmount(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unmount: %v", err)
	}
	if err := <-waited; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait: %v", err)
	}
	unix.Close(fd)
	_ = detach(m.dir)
	m.client.Close()
}
