package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const readyWord = "ready"

// tellReady tells the process that waits for this one, by a descriptor that it gave, and
// lets go of its standard error. A negative descriptor is nobody's.
func tellReady(fd int) error {
	if fd < 0 {
		return nil
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	if err := syscall.Dup3(int(null.Fd()), 2, 0); err != nil {
		return err
	}
	ready := os.NewFile(uintptr(fd), "ready")
	_, err = ready.WriteString(readyWord)
	return errors.Join(err, ready.Close())
}

// inBackground runs this program with argv in a session of its own, with the descriptor
// for tellReady as number 3, and returns when that has said that it is ready, or failed.
// what is what it gets ready.
func (a *app) inBackground(ctx context.Context, what string, argv []string) error {
	reading, writing, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reading.Close()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Stderr, cmd.ExtraFiles = argv, a.err, []*os.File{writing}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = writing.Close()
	if err != nil {
		return err
	}
	unhook := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer unhook()
	if said, err := io.ReadAll(reading); err == nil && string(said) == readyWord {
		return cmd.Process.Release()
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitError{exit.ExitCode(), nil} // it said why itself
	}
	return fmt.Errorf("the background process ended before the %s was ready: %w", what, err)
}

// writePID writes the process's number; the function it returns removes the file.
func writePID(file string) (remove func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	text := strconv.Itoa(os.Getpid()) + "\n"
	if err := renameio.WriteFile(file, []byte(text), 0o644, renameio.IgnoreUmask()); err != nil {
		return nil, fmt.Errorf("--pid-file: %w", err)
	}
	return func() {
		if now, err := os.ReadFile(file); err == nil && string(now) == text { // not another server's
			_ = os.Remove(file)
		}
	}, nil
}

// become makes an ordinary user of root, with that user's groups, who keeps nothing of root's.
// The directory dir is made for that user first. Without a name nothing happens.
func become(name, dir string) error {
	if name == "" || os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		if u, err = user.LookupId(name); err != nil {
			return usageError{fmt.Errorf("--user: there is no user %s", name)}
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return err
	}
	groups, err := groupsOf(u)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return syscall.Setgroups(groups) },
		func() error { return syscall.Setresgid(gid, gid, gid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("becoming the user %s: %w", name, err)
		}
	}
	return nil
}

// groupsOf is a user's groups.
func groupsOf(u *user.User) ([]int, error) {
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("groups of %s: %w", u.Username, err)
	}
	groups := make([]int, len(ids))
	for i, id := range ids {
		if groups[i], err = strconv.Atoi(id); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// listen listens on the address, in whose place of a port may stand a range, LOW-HIGH:
// the first free one of it is taken.
func listen(address string) (net.Listener, error) {
	host, ports, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	low, high, isRange := strings.Cut(ports, "-")
	if !isRange {
		return net.Listen("tcp", address)
	}
	from, err1 := strconv.Atoi(low)
	to, err2 := strconv.Atoi(high)
	if err := errors.Join(err1, err2); err != nil || from < 1 || to > 65535 || from > to {
		return nil, fmt.Errorf("%s is not a range of ports", ports)
	}
	for port := from; ; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil || port == to || !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
}

// parentCheck is how often a process looks whether its parent is still there.
const parentCheck = 500 * time.Millisecond

// untilOrphaned calls end when the process's parent has ended, unless ctx ends first.
func untilOrphaned(ctx context.Context, end func()) {
	parent := os.Getppid()
	tick := time.NewTicker(parentCheck)
	defer tick.Stop()
	for os.Getppid() == parent {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	end()
}
