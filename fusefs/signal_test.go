package fusefs

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

// TestInterruptedReadEnds checks that a process which hangs in a read can be ended by a
// signal at once, and that the late answer does no harm.
func TestInterruptedReadEnds(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := mounted(t, p, r.Addr)
	content := strings.Repeat("content ", 1<<17)
	for i, sig := range []os.Signal{os.Interrupt, os.Kill} {
		name := fmt.Sprint("f", i)
		write(t, m.remote(name), content)
		cmd := exec.Command("sh", "-c", `exec 3<"$1"; echo open; read line; exec cat <&3`, "sh", m.path(name))
		in, _ := cmd.StdinPipe()
		out, _ := cmd.StdoutPipe()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		r.Pause()
		fmt.Fprintln(in, "read")
		waitFor(t, "cat waits for its read", func() bool {
			comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
			where, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cmd.Process.Pid))
			return string(comm) == "cat\n" && strings.HasPrefix(string(where), "0 0x0 ")
		})
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, _ = io.Copy(io.Discard, out)
			ended <- cmd.Wait()
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%v: the read succeeded", sig)
			}
		case <-time.After(handledGrace):
			t.Errorf("%v did not end the process", sig)
			r.Resume()
			<-ended
		}
		r.Resume()
		if got := read(t, m.path(name)); got != content {
			t.Errorf("then %d bytes were read", len(got))
		}
	}
}

// TestHandledSignals checks that a process that handles a stream of signals never sees
// EINTR, as it would not on a local disk.
func TestHandledSignals(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := mounted(t, p, r.Addr, quick)
	r.SetDelay(10 * time.Millisecond)
	help(t, "signal", m.dir)
}

// underSignals works in a directory while one signal after the other comes.
func underSignals(args []string) error {
	runtime.LockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	pid, tid := unix.Getpid(), unix.Gettid()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
				_ = unix.Tgkill(pid, tid, syscall.SIGUSR1)
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	buf := make([]byte, 1000)
	for i := range 4 {
		name := fmt.Sprintf("%s/f%d", args[0], i)
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CREAT, 0o644)
		if err != nil {
			return fmt.Errorf("open: %w", err)
		}
		if _, err := unix.Write(fd, buf); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		if err := unix.Fsync(fd); err != nil {
			return fmt.Errorf("fsync: %w", err)
		}
		if err := unix.Close(fd); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		var st unix.Stat_t
		if err := unix.Stat(name, &st); err != nil {
			return fmt.Errorf("stat: %w", err)
		}
		if fd, err = unix.Open(name, unix.O_RDONLY, 0); err != nil {
			return fmt.Errorf("open to read: %w", err)
		}
		if _, err := unix.Read(fd, buf); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		unix.Close(fd)
		if err := unix.Rename(name, name+".new"); err != nil {
			return fmt.Errorf("rename: %w", err)
		}
	}
	return nil
}

// TestFatalPending reads states of threads.
func TestFatalPending(t *testing.T) {
	status := func(pending, shared, blocked, ignored, caught uint64) []byte {
		return fmt.Appendf(nil, "Name:\tx\nThreads:\t1\nSigPnd:\t%016x\nShdPnd:\t%016x\nSigBlk:\t%016x\nSigIgn:\t%016x\nSigCgt:\t%016x\n",
			pending, shared, blocked, ignored, caught)
	}
	intr, usr := sigset(syscall.SIGINT), sigset(syscall.SIGUSR1)
	for _, c := range []struct {
		name   string
		status []byte
		want   bool
	}{
		{"nothing", status(0, 0, 0, 0, 0), false},
		{"default SIGINT for the process", status(0, intr, 0, 0, usr), true},
		{"default SIGINT for the thread", status(intr, 0, 0, 0, 0), true},
		{"handled SIGINT", status(0, intr, 0, 0, intr), false},
		{"blocked SIGINT", status(0, intr, intr, 0, 0), false},
		{"ignored SIGINT", status(0, intr, 0, intr, 0), false},
		{"handled and SIGKILL", status(sigset(syscall.SIGKILL), usr, 0, 0, usr), true},
		{"SIGCHLD, SIGTSTP", status(sigset(syscall.SIGCHLD, syscall.SIGTSTP), 0, 0, 0, 0), false},
		{"not a status", []byte("nonsense"), false},
	} {
		if got := fatalPending(c.status); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
