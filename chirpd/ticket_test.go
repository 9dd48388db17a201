package chirpd_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
)

// ticket makes a key, and registers it by a client as its own for some seconds.
func ticket(t *testing.T, p *peer, seconds int) *auth.Ticket {
	t.Helper()
	k, err := auth.NewTicket("localhost:9094", time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	pem := k.PublicPEM()
	p.send(fmt.Sprintf("ticket_register self %d %d\n%s", seconds, len(pem), pem))
	if got := p.line(); got != "0" {
		t.Fatalf("ticket_register was answered %s", got)
	}
	return k
}

// with authenticates by ticket.
func (s *site) with(k *auth.Ticket) *peer {
	s.t.Helper()
	p := s.dial()
	p.want("yes", "ticket")
	p.want("64", "%s", k.Digest())
	challenge := p.bytes(64)
	signature, err := rsa.SignPKCS1v15(rand.Reader, k.Key, crypto.Hash(0), []byte(challenge))
	if err != nil {
		s.t.Fatal(err)
	}
	p.send(fmt.Sprintf("%d\n%s", len(signature), signature))
	for _, want := range []string{"success", "yes", "ticket", k.Digest()} {
		if got := p.line(); got != want {
			s.t.Fatalf("authenticating by ticket: got %q, want %q", got, want)
		}
	}
	return p
}

// TestTicketMasks gives two tickets of one owner different masks: each has the owner's
// rights and its mask, never more, wherever links lead.
func TestTicketMasks(t *testing.T) {
	s := serve(t)
	o := s.as("owner")
	for _, dir := range []string{"data", "data/in", "data/in/deep", "database", "closed"} {
		o.want("0", "mkdir /%s 493", dir)
		put(o, "/"+dir+"/f")
	}
	o.want("0", "setacl /closed unix:owner la")
	o.want("0", "symlink /database /data/out")
	r, rw := ticket(t, o, 3600), ticket(t, o, 3600)
	for _, m := range []struct {
		k            *auth.Ticket
		path, rights string
	}{
		{r, "/data", "r"}, {rw, "/data", "rw"}, {rw, "/data/in", "rwlda"}, {rw, "/data/in/deep", "n"}, {r, "/closed", "rwlda"},
	} {
		o.want("0", "ticket_modify ticket:%s %s %s", m.k.Digest(), m.path, m.rights)
	}
	reader, writer := s.with(r), s.with(rw)
	for _, c := range []struct {
		p           *peer
		want, about string
	}{
		{reader, "6", "getfile /data/f"}, {reader, "-2", "open /data/f w 0"}, {reader, "-2", "stat /data/f"},
		{reader, "6", "getfile /data/in/f"}, {reader, "-2", "getfile /f"}, {reader, "-2", "stat /"},
		{reader, "-2", "getfile /database/f"}, {reader, "-2", "getfile /data/out/f"}, {reader, "-2", "getfile /database/../database/f"},
		{reader, "-2", "getfile /closed/f"}, {reader, "0", "stat /closed/f"}, {reader, "0", "setacl /closed unix:x l"},
		{reader, "-2", "setacl /data unix:x l"}, {reader, "0", "getacl /database"},
		{writer, "6", "getfile /data/f"}, {writer, "0", "open /data/f rw 0"}, {writer, "-2", "unlink /data/f"},
		{writer, "-2", "getfile /database/f"}, {writer, "0", "setacl /data/in unix:x l"}, {writer, "-2", "getfile /data/in/deep/f"},
		{writer, "0", "unlink /data/in/f"}, {writer, "-2", "rmall /data/in/deep/f"},
		// Neither may a directory be moved out from under a mask within it, nor be
		// removed with what that keeps.
		{writer, "0", "mkdir /data/in/x 493"}, {writer, "0", "rename /data/in/x /data/in/y"}, {writer, "-2", "rename /data/in/deep /data/in/d"},
		{writer, "-2", "rmall /data/in/deep"}, {writer, "0", "rmall /data/in/y"},
	} {
		if got := c.p.whole(c.about); got != c.want {
			t.Errorf("%s: got %s, want %s", c.about, got, c.want)
		}
	}
	if got := s.read("data/in/deep/f"); got != "abcdef" {
		t.Errorf("the file below a mask has %q", got)
	}
	o.want("10", "whoami 100")
	o.bytes(10)
	reader.want("10", "whoami 100")
	if got := reader.bytes(10); got != "unix:owner" {
		t.Errorf("a ticket's client is %q", got)
	}
}

// TestTicketLife ends tickets: by deletion and by time, the leeway included, also while
// a client is connected.
func TestTicketLife(t *testing.T) {
	s := serve(t)
	o := s.as("owner")
	put(o, "/f")
	k := ticket(t, o, 3600)
	o.want("0", "ticket_modify ticket:%s / rl", k.Digest())
	p := s.with(k)
	p.want("0", "open /f r 0")
	p.line()

	// Within the leeway it still works, beyond it nothing does.
	s.expire(k, time.Now().Add(-auth.Leeway/2))
	p.want("3", "pread 0 3 0")
	p.bytes(3)
	s.expire(k, time.Now().Add(-auth.Leeway-2*time.Second))
	for _, request := range []string{"pread 0 3 0", "stat /f", "whoami 100", "close 0"} {
		p.want("-1", "%s", request)
	}
	p.send("pwrite 0 5 0\nstat\n")
	if got := p.line(); got != "-1" {
		t.Errorf("a write by an expired ticket: %s", got)
	}
	if !strings.Contains(s.log.String(), "the ticket expired at") {
		t.Error("the log does not say why")
	}
	q := s.dial()
	q.want("yes", "ticket")
	q.want("declined", "%s", k.Digest())

	// It comes back when its end is moved, and goes when it is deleted.
	s.expire(k, time.Now().Add(time.Hour))
	p.want("3", "pread 0 3 0")
	p.bytes(3)
	o.want("0", "ticket_delete ticket:%s", k.Digest())
	p.want("-1", "stat /f")
	o.want("-3", "ticket_get ticket:%s", k.Digest())
}

// expire changes a ticket's end in its file, from outside the server.
func (s *site) expire(k *auth.Ticket, when time.Time) {
	s.t.Helper()
	files, err := filepath.Glob(filepath.Join(s.state, "*", "*"+k.Digest()))
	if err != nil || len(files) != 1 {
		s.t.Fatalf("the ticket's file: %v (%v)", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		s.t.Fatal(err)
	}
	before, rest, ok := bytes.Cut(text, []byte("expiration \""))
	_, after, ok2 := bytes.Cut(rest, []byte("\""))
	if !ok || !ok2 {
		s.t.Fatalf("no expiration in %q", text)
	}
	text = fmt.Appendf(before, "expiration \"%d\"%s", when.Unix(), after)
	if err := os.WriteFile(files[0]+".new", text, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(files[0]+".new", files[0]); err != nil {
		s.t.Fatal(err)
	}
}

// TestTicketOwners keeps tickets from everyone but their owners.
func TestTicketOwners(t *testing.T) {
	s := serve(t)
	o, other := s.as("owner"), s.as("other")
	k := ticket(t, o, 3600)
	name := "ticket:" + k.Digest()
	o.want("0", "ticket_modify %s / rl", name)
	holder := s.with(k)
	for _, c := range []struct {
		p              *peer
		want, question string
	}{
		{other, "-2", "ticket_get " + name}, {other, "-2", "ticket_delete " + name}, {other, "-2", "ticket_modify " + name + " / rl"},
		{other, "-2", "ticket_list all"}, {other, "-2", "ticket_list unix:owner"}, {o, "-2", "ticket_list all"},
		{holder, "-2", "ticket_modify " + name + " / rwlda"}, {holder, "-2", "ticket_delete " + name},
		{o, "-8", "ticket_get nonsense"}, {o, "-3", "ticket_get ticket:../../../etc/passwd"}, {o, "-3", "ticket_modify " + name + " /nope rl"},
		{o, "-8", "ticket_modify " + name + " / rz"}, {o, "-3", "ticket_delete ticket:00000000000000000000000000000000"},
	} {
		c.p.want(c.want, "%s", c.question)
	}
	pem := string(k.PublicPEM())
	for c, want := range map[*peer]string{holder: "-4", other: "-4"} {
		c.send(fmt.Sprintf("ticket_register self 60 %d\n%s", len(pem), pem))
		if got := c.line(); got != want {
			t.Errorf("registering another's key: %s, want %s", got, want)
		}
	}
	o.send("ticket_register self 60 5\nhello")
	if got := o.line(); got != "-8" {
		t.Errorf("registering nonsense: %s", got)
	}
	for _, subject := range []string{"self", "unix:owner"} {
		o.want("0", "ticket_list %s", subject)
		length := o.line()
		if got := o.bytes(len(name)); length != fmt.Sprint(len(name)) || got != name || o.line() != "0" {
			t.Errorf("listed %s %q", length, got)
		}
	}

	holder.want("0", "ticket_get %s", name)
	for _, want := range []string{"10", "unix:owner" + fmt.Sprint(len(pem))} {
		if got := holder.line(); got != want {
			t.Errorf("ticket_get: %q, want %q", got, want)
		}
	}
	if got := holder.bytes(len(pem)); got != pem {
		t.Errorf("ticket_get: key %q", got)
	}
	for _, want := range []string{"3600", "/ rl", "0"} {
		if got := holder.line(); got != want && want != "3600" {
			t.Errorf("ticket_get: %q, want %q", got, want)
		}
	}
	if text := s.log.String(); strings.Contains(text, "PUBLIC KEY") || strings.Contains(text, "MIIB") {
		t.Error("a key is in the log")
	}
}

// TestNoTickets answers ticket commands where there are none.
func TestNoTickets(t *testing.T) {
	s := serve(t, func(c *chirpd.Config) { c.Tickets, c.StateDir = false, "" })
	p := s.as("owner")
	for _, request := range []string{"ticket_list self", "ticket_get ticket:x", "ticket_delete ticket:x", "ticket_modify ticket:x / r", "ticket_register self 60 0"} {
		p.want("-23", "%s", request)
	}
	p.want("0", "mkdir /d 493")
}
