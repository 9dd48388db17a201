package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type outcome struct {
	subject Subject
	err     error
}

// meet lets a client and a server with these methods authenticate over a real
// connection, and returns what each of them thinks of it.
func meet(t *testing.T, server string, methods []Method, verifiers []Verifier) (client, srv outcome) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan outcome)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			done <- outcome{err: err}
			return
		}
		defer c.Close()
		s, err := Accept(ctx, stream(c), c.RemoteAddr(), verifiers)
		done <- outcome{s, err}
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	client.subject, client.err = Authenticate(ctx, stream(c), server, methods)
	_ = c.Close()
	return client, <-done
}

func stream(c net.Conn) *Stream { return &Stream{wire.NewReader(c, 4096), c} }

// zone is a name server's content.
type zone struct{ ptr, forward map[string][]string }

func (z zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	return found(z.ptr, addr)
}

func (z zone) LookupHost(_ context.Context, host string) ([]string, error) {
	return found(z.forward, host)
}

func found(m map[string][]string, key string) ([]string, error) {
	if list, ok := m[key]; ok {
		return list, nil
	}
	return nil, fmt.Errorf("no record of %s", key)
}

func TestMethods(t *testing.T) {
	dir := t.TempDir()
	me := UserName(uint32(os.Getuid()))
	good := zone{map[string][]string{"127.0.0.1": {"N1.example."}}, map[string][]string{"n1.example": {"10.0.0.1", "127.0.0.1"}}}
	liar := zone{map[string][]string{"127.0.0.1": {"n1.trusted.example."}}, map[string][]string{"n1.trusted.example": {"10.0.0.9"}}}
	for _, c := range []struct {
		name      string
		methods   []Method
		verifiers []Verifier
		want      string // empty: nobody is let in
	}{
		{"unix", []Method{Unix(dir)}, []Verifier{UnixVerifier(dir, time.Second)}, "unix:" + me},
		{"address", []Method{Address()}, []Verifier{AddressVerifier()}, "address:127.0.0.1"},
		{"hostname", []Method{Hostname()}, []Verifier{HostnameVerifier(good)}, "hostname:n1.example"},
		{"name does not lead back", []Method{Hostname()}, []Verifier{HostnameVerifier(liar)}, ""},
		{"name unknown", []Method{Hostname()}, []Verifier{HostnameVerifier(zone{})}, ""},
		{"second method", []Method{Hostname(), Unix(dir)}, []Verifier{UnixVerifier(dir, time.Second)}, "unix:" + me},
		{"after a failure", []Method{Hostname(), Address()}, []Verifier{HostnameVerifier(liar), AddressVerifier()}, "address:127.0.0.1"},
		{"not offered", []Method{Address()}, []Verifier{UnixVerifier(dir, time.Second)}, ""},
		{"nothing to offer", nil, []Verifier{AddressVerifier()}, ""},
		{"another directory", []Method{Unix(dir)}, []Verifier{UnixVerifier(t.TempDir(), time.Second)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := meet(t, "h:9094", c.methods, c.verifiers)
			if c.want == "" {
				if !errors.Is(client.err, wire.NotAuthenticated) || server.err == nil {
					t.Errorf("client %v, server %v; want both to fail", client, server)
				}
			} else if client.err != nil || server.err != nil || client.subject != server.subject || server.subject.String() != c.want {
				t.Errorf("client %v, server %v; want %s", client, server, c.want)
			}
		})
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("challenges are left: %v", left)
	}
}

// answering is a client that answers a unix challenge as it likes.
type answering struct {
	Method
	make func(challenge string) error
}

func (a answering) Prove(_ context.Context, s *Stream, _ string) error {
	challenge, err := s.line()
	if err != nil {
		return err
	}
	if err := a.make(challenge); err != nil {
		return err
	}
	defer os.Remove(challenge)
	if err := s.send("yes"); err != nil {
		return err
	}
	return s.expectYes("refused")
}

func TestServerRefusesFalseAnswers(t *testing.T) {
	dir := t.TempDir()
	victim := filepath.Join(dir, "victim")
	if err := os.WriteFile(victim, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(dir, "older") // the victim made it where the attacker may rename
	if err := os.WriteFile(older, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	time.Sleep(answerAge + 100*time.Millisecond)
	attacks := map[string]func(string) error{
		"older file":    func(c string) error { return os.Rename(older, c) },
		"symbolic link": func(c string) error { return os.Symlink(victim, c) },
		"hard link":     func(c string) error { return os.Link(victim, c) },
		"with content":  func(c string) error { return os.WriteFile(c, []byte("x"), 0o600) },
		"directory":     func(c string) error { return os.Mkdir(c, 0o700) },
		"nothing":       func(string) error { return nil },
	}
	if st, err := examine(older); err != nil || st.Mask&unix.STATX_BTIME == 0 {
		t.Logf("files have no time of birth here (%v): older ones cannot be told", err)
		delete(attacks, "older file")
	}
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			client, server := meet(t, "h:9094", []Method{answering{Unix(dir), attack}}, []Verifier{UnixVerifier(dir, 20*time.Millisecond)})
			if client.err == nil || server.err == nil {
				t.Errorf("let in as %v", server.subject)
			}
		})
	}
}

// challenging is a server that names a file of its liking as challenge.
type challenging string

func (challenging) Name() string { return "unix" }

func (c challenging) Verify(_ context.Context, s *Stream, _ net.Addr) (string, error) {
	if err := s.send(string(c)); err != nil {
		return "", err
	}
	answer, err := s.line()
	if err != nil || answer == "no" {
		return "", fmt.Errorf("%w: client said %q, %v", errRefused, answer, err)
	}
	return "anybody", s.send("yes")
}

func TestClientRefusesStrangeChallenges(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	exists := filepath.Join(dir, "challenge.1.1")
	dangling := filepath.Join(dir, "challenge.1.2")
	if err := errors.Join(os.WriteFile(exists, nil, 0o600), os.Symlink(filepath.Join(other, "made"), dangling)); err != nil {
		t.Fatal(err)
	}
	for _, challenge := range []string{
		filepath.Join(other, "challenge.1.3"), dir + "/../" + filepath.Base(other) + "/challenge.1.3", dir + "/authorized_keys",
		dir + "/challenge.a b", dir + "/challenge./../x", "challenge.1.3", "", exists, dangling,
	} {
		client, server := meet(t, "h:9094", []Method{Unix(dir)}, []Verifier{challenging(challenge)})
		if client.err == nil || server.err == nil {
			t.Errorf("challenge %q was answered", challenge)
		}
	}
	for _, d := range []string{dir, other} {
		left, _ := os.ReadDir(d)
		for _, e := range left {
			if name := e.Name(); d == other || name != "challenge.1.1" && name != "challenge.1.2" {
				t.Errorf("%s was made in %s", name, d)
			}
		}
	}
}

func TestMethodsByName(t *testing.T) {
	mine, err := NewTicket("data:9094", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []string{"localhost:9094", "[::1]:9094", "127.0.0.1:1"} {
		if methods, err := Methods("", nil, server, ""); err != nil || len(methods) != 1 || methods[0].Name() != "unix" {
			t.Errorf("without tickets, %s is offered %v, %v", server, methods, err)
		}
	}
	for _, c := range []struct{ names, server, want string }{
		{"", "data:9094", "ticket"},
		{"", "DATA", "ticket"},
		{"", "other:9094", ""},
		{"", "data:9095", ""},
		{"", "localhost:9094", ""}, // a ticket for another server lends nothing here, and unix would lend more
		{"unix,ticket, hostname,address", "data:9094", "unix ticket hostname address"},
	} {
		methods, err := Methods(c.names, []*Ticket{mine}, c.server, "")
		var got []string
		for _, m := range methods {
			got = append(got, m.Name())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("Methods(%q, %q) = %v, %v; want %q", c.names, c.server, got, err, c.want)
		}
	}
	if _, err := Methods("kerberos", nil, "h:1", ""); err == nil {
		t.Error("an unknown method is taken")
	}
}
