package auth

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skeletonkey/chirpd/wire"
)

// shared is one key for all tests: making one is slow.
var shared = sync.OnceValue(func() *Ticket {
	t, err := NewTicket("h:9094", time.Unix(4000000000, 0))
	if err != nil {
		panic(err)
	}
	t.Subject = "unix:alice"
	return t
})

func openStore(t testing.TB, registered ...*Ticket) *Store {
	t.Helper()
	s, err := OpenStore(filepath.Join(t.TempDir(), "tickets"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tk := range registered {
		if digest, err := s.Register("unix:alice", tk.PublicPEM(), tk.Expires); err != nil || digest != tk.Digest() {
			t.Fatalf("register: %s, %v", digest, err)
		}
	}
	return s
}

func TestTicketAuthenticates(t *testing.T) {
	tk := shared()
	expired := *tk
	expired.Expires = time.Now().Add(-Leeway - time.Second)
	justExpired := *tk
	justExpired.Expires = time.Now().Add(-Leeway / 2)
	stranger, err := NewTicket("h:9094", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	forged := &forger{shared(), stranger}
	for _, c := range []struct {
		name   string
		store  *Store
		method Method
		server string
		ok     bool
	}{
		{"good", openStore(t, tk), tk.Method(), "h:9094", true},
		{"default port", openStore(t, tk), tk.Method(), "H", true},
		{"within the leeway", openStore(t, &justExpired), tk.Method(), "h:9094", true},
		{"expired", openStore(t, &expired), tk.Method(), "h:9094", false},
		{"unknown", openStore(t), tk.Method(), "h:9094", false},
		{"another key", openStore(t, tk), forged, "h:9094", false},
		{"another server", openStore(t, tk), tk.Method(), "evil:9094", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := meet(t, c.server, []Method{c.method, Address()}, []Verifier{TicketVerifier(c.store), AddressVerifier()})
			if client.err != nil || server.err != nil || client.subject != server.subject {
				t.Fatalf("client %v, server %v", client, server)
			}
			if got := server.subject.Method == "ticket"; got != c.ok {
				t.Errorf("let in as %v", server.subject)
			}
			if c.ok && server.subject.Name != tk.Digest() {
				t.Errorf("let in as %v", server.subject)
			}
		})
	}
}

// forger shows one ticket's digest and signs with the key of another.
type forger struct{ shown, key *Ticket }

func (*forger) Name() string { return "ticket" }

func (f *forger) Prove(_ context.Context, s *Stream, _ string) error {
	if err := s.send(f.shown.Digest()); err != nil {
		return err
	}
	head, err := s.line()
	if err != nil {
		return err
	}
	m := ticketMethod{f.key}
	if err := m.sign(s, head); err != nil {
		return err
	}
	if verdict, err := s.line(); err != nil || verdict != "failure" {
		return errors.Join(err, errors.New(verdict))
	}
	return m.giveUp(s, "forged")
}

// relay is a hostile server: it asks its own client to sign what the good server
// wants signed. It works on a ticket that is not bound, which is why ours are.
type relay struct{ good *Stream }

func (relay) Name() string { return "ticket" }

func (r relay) Verify(_ context.Context, s *Stream, _ net.Addr) (string, error) {
	digest, err := s.line()
	if err != nil || digest == "==" {
		return "", errors.Join(err, errRefused)
	}
	if err := r.good.send("ticket", digest); err != nil {
		return "", err
	}
	_, _ = r.good.line()
	head, err := r.good.line()
	if err != nil {
		return "", err
	}
	challenge, err := r.good.blob(head)
	if err != nil {
		return "", err
	}
	if err := s.sendBlob(challenge); err != nil {
		return "", err
	}
	if head, err = s.line(); err != nil {
		return "", err
	}
	signature, err := s.blob(head)
	if err != nil {
		return "", err
	}
	if err := r.good.sendBlob(signature); err != nil {
		return "", err
	}
	verdict, err := r.good.line()
	return verdict, errors.Join(err, s.send("success"))
}

func TestRelayedChallenge(t *testing.T) {
	unbound := *shared()
	unbound.Server = ""
	for _, c := range []struct {
		ticket *Ticket
		stolen bool
	}{{&unbound, true}, {shared(), false}} {
		thief, good := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = Accept(context.Background(), stream(good), good.RemoteAddr(), []Verifier{TicketVerifier(openStore(t, shared()))})
			_ = good.Close()
		}()
		_, evil := meet(t, "evil:9094", []Method{c.ticket.Method()}, []Verifier{relay{stream(thief)}})
		_ = thief.Close()
		<-done
		if got := evil.subject.Name == "success"; got != c.stolen {
			t.Errorf("bound to %q: the thief is let in: %v (%v)", c.ticket.Server, got, evil.err)
		}
	}
}

func TestTicketFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.ticket")
	if err := errors.Join(os.WriteFile(path, []byte("old"), 0o644), shared().Save(path)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	got, err := LoadTicket(path)
	if err != nil || !got.Key.Equal(shared().Key) || got.Server != "h:9094" || got.Subject != "unix:alice" || !got.Expires.Equal(shared().Expires) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadTicket(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a ticket that others may read: %v", err)
	}
}

func TestTicketGoesNowhereOrWhole(t *testing.T) {
	if err := shared().Save(filepath.Join(t.TempDir(), "missing", "job.ticket")); err == nil {
		t.Error("saved into a directory that is not there")
	}
	dir := t.TempDir()
	if err := shared().Save(filepath.Join(dir, "a-directory-name-that-is-far-too-long-"+strings.Repeat("x", 255))); err == nil {
		t.Error("saved under an impossible name")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("half a ticket is left: %v", left)
	}
}

// TestDigestIsOpenssls compares with the program that the protocol names.
func TestDigestIsOpenssls(t *testing.T) {
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
			t.Fatal("openssl is not there")
		}
		t.Skip("openssl is not there")
	}
	path := filepath.Join(t.TempDir(), "key")
	if err := shared().Save(path); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(openssl, "rsa", "-in", path, "-pubout").Output()
	if err != nil || !bytes.Equal(out, shared().PublicPEM()) {
		t.Errorf("openssl prints\n%s%v\nours is\n%s", out, err, shared().PublicPEM())
	}
}

func TestStore(t *testing.T) {
	s := openStore(t, shared())
	digest := shared().Digest()
	if err := errors.Join(s.Modify(digest, "/b", "rl"), s.Modify(digest, "/a \"q\"\\", "rwld"), s.Modify(digest, "/b", "r")); err != nil {
		t.Fatal(err)
	}
	again, err := OpenStore(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	want := Registered{"unix:alice", shared().PublicPEM(), shared().Expires,
		[]TicketRight{{"/", "n"}, {"/a \"q\"\\", "rwld"}, {"/b", "r"}}, ""}
	for _, store := range []*Store{s, again} {
		if got, err := store.Get(digest); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%v %s", err, cmp.Diff(want, got))
		}
	}
	if _, err := s.Register("unix:bob", shared().PublicPEM(), time.Now()); !errors.Is(err, fs.ErrExist) {
		t.Errorf("bob takes alice's ticket: %v", err)
	}
	for subject, n := range map[string]int{"unix:alice": 1, "all": 1, "unix:alic": 0, "unix:alicea": 0} {
		if list, err := s.List(subject); err != nil || len(list) != n {
			t.Errorf("list %s: %v, %v", subject, list, err)
		}
	}
	if err := again.Delete(digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(digest); !errors.Is(err, ErrNoTicket) {
		t.Errorf("a ticket that was removed from outside: %v", err)
	}
	for _, bad := range []string{"", "../../etc/passwd", strings.Repeat("A", 32), digest + "/"} {
		if _, err := s.Get(bad); !errors.Is(err, ErrNoTicket) {
			t.Errorf("Get(%q): %v", bad, err)
		}
	}
}

func TestStoreForgetsLongExpired(t *testing.T) {
	s := openStore(t)
	if _, err := s.Register("unix:alice", shared().PublicPEM(), time.Now().Add(-2*keepExpired)); err != nil {
		t.Fatal(err)
	}
	other, err := NewTicket("h:9094", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Register("unix:alice", other.PublicPEM(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List("all"); err != nil || len(list) != 1 || list[0] != other.Digest() {
		t.Errorf("%v, %v", list, err)
	}
}

func TestWeakKeysAreRefused(t *testing.T) {
	s := openStore(t)
	for _, key := range []string{"", "no PEM", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"} {
		if _, err := s.Register("unix:alice", []byte(key), time.Now()); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// TestSwappedTicket has a hostile client swap a trusted ticket's file for a link to
// one of its own: it is never believed.
func TestSwappedTicket(t *testing.T) {
	root := t.TempDir()
	left, err := OpenExportStore(root, false)
	if err != nil {
		t.Fatal(err)
	}
	name, forged := left.file(shared().Digest()), filepath.Join(root, "forged")
	mine := Registered{Subject: "unix:victim", PublicPEM: shared().PublicPEM(), Expires: shared().Expires,
		Rights: []TicketRight{{"/", "rwlda"}}}
	if err := os.WriteFile(forged, mine.format(), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("forged", name); err != nil {
		t.Fatal(err)
	}
	if r, err := left.read(shared().Digest()); err == nil {
		t.Errorf("the link is believed: %+v", r)
	}
}

func TestOnlyChallengesAreSigned(t *testing.T) {
	for _, size := range []string{"0\n", "63\n" + strings.Repeat("x", 63), "200\n" + strings.Repeat("x", 200)} {
		var sent bytes.Buffer
		s := &Stream{wire.NewReader(strings.NewReader(size), 64), &sent}
		head, err := s.line()
		if err != nil {
			t.Fatal(err)
		}
		if err := (ticketMethod{shared()}).sign(s, head); err == nil || sent.Len() > 0 {
			t.Errorf("%.5q is signed: %v", size, err)
		}
	}
}
