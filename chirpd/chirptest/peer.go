package chirptest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
)

// Peer is a server on loopback that exports an empty directory. The user who runs
// the test may do everything in it, by unix (challenges lie in /tmp).
type Peer struct {
	Addr string // host:port, the same after Stop and Start
	Root string // the exported directory
	Real bool   // Debian's chirp_server

	t     testing.TB
	pid   int // of a real server, and of its process group
	start func() (stop func())
	stop  func()
}

// Start runs the server after Stop.
func (p *Peer) Start() {
	p.t.Helper()
	if p.stop == nil {
		p.stop = p.start()
	}
}

// Stop ends the server at once and all its connections, as kill -9 would.
func (p *Peer) Stop() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
}

func newPeer(t testing.TB, real bool, start func(p *Peer) (stop func())) *Peer {
	p := &Peer{Addr: freeAddr(t), Root: tempDir(t), Real: real, t: t}
	p.start = func() func() { return start(p) }
	p.Start()
	t.Cleanup(p.Stop)
	return p
}

// User is the name by which the user who runs the test appears in ACLs, after unix:.
func User(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// tempDir is a directory that other users can reach, unlike t.TempDir.
func tempDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/tmp", "chirptest-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// freeAddr is an address that nobody listens on. Its port is below those that the
// kernel gives to outgoing connections, so that it stays free while a server is
// stopped.
func freeAddr(t testing.TB) string {
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000)))
		if err == nil {
			defer func() { _ = l.Close() }()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free on 127.0.0.1")
	return ""
}

// Server starts our server in this process. Each of change may change its
// configuration, in which tickets are on.
func Server(t testing.TB, change ...func(*chirpd.Config)) *Peer {
	t.Helper()
	state := t.TempDir()
	return newPeer(t, false, func(p *Peer) func() {
		conf := chirpd.Config{
			Root: p.Root, StateDir: state, Tickets: true,
			Verifiers: []auth.Verifier{auth.UnixVerifier(auth.DefaultChallengeDir, 5*time.Second)},
			Log:       slog.New(slog.NewTextHandler(t.Output(), nil)),
		}
		for _, f := range change {
			f(&conf)
		}
		s, err := chirpd.New(conf)
		if err != nil {
			t.Fatal(err)
		}
		l := listen(t, p.Addr)
		served := make(chan error, 1)
		go func() { served <- s.Serve(context.Background(), l) }()
		return func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing the server: %v", err)
			}
			if err := <-served; err != nil {
				t.Errorf("serving: %v", err)
			}
		}
	})
}

// listen binds addr, which may take a moment while the kernel lets go of it.
func listen(t testing.TB, addr string) net.Listener {
	var err error
	for range 50 {
		var l net.Listener
		if l, err = net.Listen("tcp", addr); err == nil {
			return l
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

// RealServer starts Debian's chirp_server as an ordinary user (nobody when the test
// runs as root) with more arguments if given. Without the program the test is skipped.
func RealServer(t testing.TB, args ...string) *Peer {
	t.Helper()
	program, err := exec.LookPath("chirp_server")
	if err != nil {
		Missing(t, "no chirp_server here (Debian package coop-computing-tools)")
	}
	work := tempDir(t)
	return newPeer(t, true, func(p *Peer) func() {
		acl := filepath.Join(p.Root, ".__acl")
		if _, err := os.Stat(acl); err != nil {
			if err := os.WriteFile(acl, []byte("unix:"+User(t)+" rwlda\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return startReal(t, p, program, work, args)
	})
}

func startReal(t testing.TB, p *Peer, program, work string, args []string) (stop func()) {
	_, port, _ := net.SplitHostPort(p.Addr)
	args = append([]string{"-r", p.Root, "-I", "127.0.0.1", "-p", port, "-u", "-", "-y", work,
		"-a", "unix", "-a", "ticket", "-a", "address", "-E"}, args...)
	cmd := exec.Command(program, args...)
	cmd.Dir = work
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = nobody(t)
		for _, dir := range []string{work, p.Root, filepath.Join(p.Root, ".__acl")} {
			if err := os.Chown(dir, int(cmd.SysProcAttr.Credential.Uid), -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, err := os.Create(filepath.Join(work, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop = func() {
		// The group: the server has a process for each client.
		_ = syscall.Kill(-p.pid, syscall.SIGKILL)
		<-ended
		_ = log.Close()
	}
	if !answers(p.Addr, ended) {
		stop()
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("chirp_server does not answer at %s; it said:\n%s", p.Addr, text)
	}
	return stop
}

// answers waits until addr can be connected to, and what listens there has not ended.
func answers(addr string, ended <-chan struct{}) bool {
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			break
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	select {
	case <-ended: // it was another server that answered
		return false
	default:
		return true
	}
}

func nobody(t testing.TB) *syscall.Credential {
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err1 != nil || err2 != nil {
		t.Fatalf("user nobody has uid %q and gid %q", u.Uid, u.Gid)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// Both runs test against each server, as subtests named ours and real.
func Both(t *testing.T, test func(t *testing.T, p *Peer)) {
	t.Run("ours", func(t *testing.T) { test(t, Server(t)) })
	t.Run("real", func(t *testing.T) { test(t, RealServer(t)) })
}

// Own gives a file that the test put into Root to the server's user, and opens it to
// him, as if he had made it.
func (p *Peer) Own(name string) {
	p.t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(p.Root, &st); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(p.Root, name), int(st.Uid), -1); err != nil {
		p.t.Fatal(err)
	}
}

// Pause stops the processes of a real server until Resume; connections stay.
func (p *Peer) Pause() { p.signal(syscall.SIGSTOP) }

// Resume lets a real server run again after Pause.
func (p *Peer) Resume() { p.signal(syscall.SIGCONT) }

func (p *Peer) signal(s syscall.Signal) {
	p.t.Helper()
	if p.pid == 0 {
		p.t.Fatal("only a real server can be paused; a Relay can pause the way to ours")
	}
	if err := syscall.Kill(-p.pid, s); err != nil {
		p.t.Fatal(err)
	}
}
