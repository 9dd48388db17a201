package chirpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// trusting is a verifier in place of unix that believes the name it is told, so that a
// test can be any user.
type trusting struct{}

func (trusting) Name() string { return "unix" }

func (trusting) Verify(_ context.Context, s *auth.Stream, _ net.Addr) (string, error) {
	name, err := s.ReadLine()
	if err != nil {
		return "", err
	}
	who := string(name)
	_, err = io.WriteString(s.W, "yes\n")
	return who, err
}

// site is a server of a test's own.
type site struct {
	t      testing.TB
	root   string
	state  string
	addr   string
	server *chirpd.Server
	log    *logBuffer
}

// serve starts a server on an empty directory in which unix:owner may do everything.
func serve(t testing.TB, change ...func(*chirpd.Config)) *site {
	t.Helper()
	s := &site{t: t, root: t.TempDir(), state: filepath.Join(t.TempDir(), "state"), log: new(logBuffer)}
	conf := chirpd.Config{
		Root: s.root, StateDir: s.state, Tickets: true,
		Verifiers:  []auth.Verifier{trusting{}},
		DefaultACL: "unix:owner rwlda\n",
		Log:        slog.New(slog.NewTextHandler(s.log, nil)),
	}
	for _, f := range change {
		f(&conf)
	}
	var err error
	if s.server, err = chirpd.New(conf); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- s.server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		if err := errors.Join(s.server.Close(), <-served); err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return s
}

// peer is a client that speaks the wire by hand.
type peer struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

// dial connects.
func (s *site) dial() *peer {
	s.t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	return &peer{s.t, conn, bufio.NewReaderSize(conn, 64<<10)}
}

// as connects as unix:name.
func (s *site) as(name string) *peer {
	s.t.Helper()
	p := s.dial()
	p.send("unix\n" + name + "\n")
	for _, want := range []string{"yes", "yes", "yes", "unix", name} {
		if got := p.line(); got != want {
			s.t.Fatalf("authenticating as %s: got %q, want %q", name, got, want)
		}
	}
	return p
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *peer) line() string {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil {
		p.t.Fatalf("reading a line after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

func (p *peer) bytes(n int) string {
	p.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(p.in, b); err != nil {
		p.t.Fatal(err)
	}
	return string(b)
}

// ask sends a request's line and returns the first line of the reply.
func (p *peer) ask(format string, args ...any) string {
	p.t.Helper()
	p.send(fmt.Sprintf(format, args...) + "\n")
	return p.line()
}

// want asks and compares the first line of the reply.
func (p *peer) want(reply, format string, args ...any) {
	p.t.Helper()
	if got := p.ask(format, args...); got != reply {
		p.t.Fatalf("%s: got %q, want %q", fmt.Sprintf(format, args...), got, reply)
	}
}

// ended checks that the server closes the connection now.
func (p *peer) ended() {
	p.t.Helper()
	if b, err := io.ReadAll(p.in); len(b) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
		p.t.Fatalf("the connection goes on with %q (%v)", b, err)
	}
}

func (s *site) path(name string) string { return filepath.Join(s.root, name) }

func (s *site) write(name, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(s.path(name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(s.path(name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) read(name string) string {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}
