package chirpd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
)

// serveTwo exports two directories, a and b, of which b is read-only.
func serveTwo(t *testing.T) (*site, string, string) {
	a, b := t.TempDir(), t.TempDir()
	s := serve(t, func(c *chirpd.Config) {
		c.Root = ""
		c.Exports = []chirpd.Export{{Name: "/a", Dir: a}, {Name: "/b", Dir: b, ReadOnly: true}}
	})
	return s, a, b
}

// names lists a directory.
func (p *peer) names(path string) []string {
	p.t.Helper()
	p.want("0", "getdir %s", path)
	var list []string
	for line := p.line(); line != ""; line = p.line() {
		list = append(list, line)
	}
	sort.Strings(list)
	return list
}

// TestSeveralExports shows two directories under one root; nothing leads from one into
// the other but the paths that name it.
func TestSeveralExports(t *testing.T) {
	s, a, b := serveTwo(t)
	write := func(path, content string) {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(b, "secret"), "of b")
	write(filepath.Join(a, "f"), "of a")
	for link, target := range map[string]string{"abs": "/b/secret", "up": "../../b/secret", "dots": "../b/secret", "real": filepath.Join(b, "secret")} {
		if err := os.Symlink(target, filepath.Join(a, link)); err != nil {
			t.Fatal(err)
		}
	}
	p := s.as("owner")
	if got := fmt.Sprint(p.names("/")); got != "[. .. a b]" {
		t.Errorf("the root has %s", got)
	}
	for _, link := range []string{"abs", "up", "dots", "real"} {
		p.want("-3", "getfile /a/%s", link)
	}
	for request, want := range map[string]string{
		"stat /": "0", "stat /a": "0", "stat /a/..": "0", "stat /c": "-3", "stat /c/f": "-3", "stat /a/../b/secret": "0", "lstat /b": "0",
	} {
		if p.want(want, "%s", request); want == "0" {
			p.line()
		}
	}
	for request, want := range map[string]string{
		"mkdir /c 493": "-2", "putfile /x 420 0": "-2", "rmdir /a": "-10", "rmall /a": "-10", "rename /a /c": "-2", "setacl / unix:x rl": "-2",
		"rename /a/f /b/f": "-16", "link /a/f /b/f": "-16", "mkdir /b/d 493": "-2", "unlink /b/secret": "-2", "mkdir /a/d 493": "0",
	} {
		p.want(want, "%s", request)
	}
	p.want("0", "rename /a/f /a/d/f")
	p.want("4", "getfile /a/d/f")
	p.bytes(4)
	p.want("2", "localpath /b")
	p.bytes(2)
	p.want("0", "search f|secret / 0")
	got := []string{p.line(), p.line()}
	if sort.Strings(got); fmt.Sprint(got) != "[0:/a/d/f:: 0:/b/secret::]" || p.line() != "" {
		t.Errorf("search: %q", got)
	}
}

// TestListingAgrees has the root's listing show what stat tells.
func TestListingAgrees(t *testing.T) {
	s, _, _ := serveTwo(t)
	p := s.as("owner")
	p.want("0", "stat /a")
	want := p.line()
	p.want("0", "getlongdir /")
	for line := p.line(); line != ""; line = p.line() {
		if stat := p.line(); line == "a" && stat != want {
			t.Errorf("listed %q, stat is %q", stat, want)
		}
	}
}

// TestTicketOfOneExport lends nothing in another.
func TestTicketOfOneExport(t *testing.T) {
	s, a, b := serveTwo(t)
	for _, dir := range []string{a, b} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := s.as("owner")
	k := ticket(t, o, 3600)
	o.want("0", "ticket_modify ticket:%s /a rl", k.Digest())
	h := s.with(k)
	h.want("1", "getfile /a/f")
	h.bytes(1)
	h.want("-2", "getfile /b/f")
	h.want("-2", "getdir /")
}

// TestBadExports are refused at the start.
func TestBadExports(t *testing.T) {
	dir := t.TempDir()
	for _, list := range [][]chirpd.Export{
		{{Name: "a", Dir: dir}}, {{Name: "/", Dir: dir}}, {{Name: "/a/b", Dir: dir}}, {{Name: "/..", Dir: dir}}, {{Name: "/.__x", Dir: dir}},
		{{Name: "/a", Dir: dir}, {Name: "/a", Dir: dir}}, {{Name: "/a"}}, {{Name: "/a", Dir: filepath.Join(dir, "none")}},
	} {
		s, err := chirpd.New(chirpd.Config{Exports: list, StateDir: t.TempDir(), Tickets: true})
		if err == nil {
			s.Close()
			t.Errorf("%v is served", list)
		}
	}
}

// TestTicketsByTickets has a ticket make others, which never lend more than it does.
func TestTicketsByTickets(t *testing.T) {
	s := serve(t)
	o := s.as("owner")
	o.want("0", "mkdir /d 493")
	s.write("d/f", "x")
	s.write("g", "x")
	k, other := ticket(t, o, 3600), ticket(t, o, 3600)
	o.want("0", "ticket_modify ticket:%s /d rl", k.Digest())
	holder := s.with(k)
	child := ticket(t, holder, 1<<30)
	holder.want("0", "ticket_modify ticket:%s / rwlda", child.Digest())
	c := s.with(child)
	grandchild := ticket(t, c, 3600)
	c.want("0", "ticket_modify ticket:%s /d rwl", grandchild.Digest())
	for _, p := range []*peer{c, s.with(grandchild)} {
		p.want("1", "getfile /d/f")
		p.bytes(1)
		p.want("-2", "unlink /d/f")
		p.want("-2", "getfile /g")
		p.want("-2", "putfile /d/new 420 0")
	}
	c.want("-2", "ticket_modify ticket:%s / rwlda", k.Digest())
	c.want("-2", "ticket_delete ticket:%s", other.Digest())
	holder.want("-2", "ticket_modify ticket:%s / rwlda", k.Digest())
	holder.want("0", "ticket_get ticket:%s", child.Digest())
	n := holder.line()
	holder.bytes(len("unix:owner"))
	length := holder.line()
	pem := holder.bytes(len(child.PublicPEM()))
	left := holder.line()
	if n != "10" || length != fmt.Sprint(len(pem)) || len(left) > 4 {
		t.Errorf("the child has %q seconds left, more than its maker", left)
	}
	for holder.line() != "0" {
	}
	holder.want("0", "ticket_list self")
	for range 2 {
		holder.line()
		if name := holder.bytes(39); strings.Contains(name, other.Digest()) || strings.Contains(name, k.Digest()) {
			t.Errorf("listed %s, which it has not made", name)
		}
	}
	if got := holder.line(); got != "0" {
		t.Errorf("the list goes on with %q", got)
	}
	o.want("0", "ticket_delete ticket:%s", k.Digest())
	c.want("-1", "getfile /d/f")
}

// TestTicketsLeftByTheRealServer are honoured, listed and ended; those that somebody
// else may have written are not.
func TestTicketsLeftByTheRealServer(t *testing.T) {
	real := chirptest.RealServer(t)
	d := newDebian(t, real.Addr)
	d.file("f", []byte("content"))
	d.chirp("mkdir", "/in")
	d.chirp("put", "f", "/in/f")
	d.chirp("ticket_create", "-output", "t.ticket", "-bits", "1024", "-duration", "3600", "/in", "rl")
	real.Stop()
	files, err := filepath.Glob(filepath.Join(real.Root, ".__ticket.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the real server left %v (%v)", files, err)
	}
	ours := chirptest.Server(t, func(c *chirpd.Config) {
		c.Root = real.Root
		c.Verifiers = []auth.Verifier{auth.UnixVerifier("/tmp", 5*time.Second)}
	})
	d.addr = ours.Addr
	if out, ok := d.byTicket("t.ticket", "get", "/in/f", "-"); !ok {
		t.Errorf("a ticket of the real server is refused: %s", out)
	}
	if _, ok := d.byTicket("t.ticket", "put", "f", "/in/g"); ok {
		t.Error("it lends more than it did")
	}
	if out := d.chirp("ticket_list", "self"); strings.Count(out, "ticket:") != 1 {
		t.Errorf("ticket_list: %q", out)
	}
	if err := os.Chmod(files[0], 0o622); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.byTicket("t.ticket", "get", "/in/f", "-"); ok {
		t.Error("a ticket that anybody may write is honoured")
	}
	if err := os.Chmod(files[0], 0o600); err != nil {
		t.Fatal(err)
	}
	d.chirp("ticket_modify", "t.ticket", "/in", "n")
	if _, ok := d.byTicket("t.ticket", "get", "/in/f", "-"); ok {
		t.Error("a mask that was taken back still lets read")
	}
	d.chirp("ticket_delete", "t.ticket")
	if out := d.chirp("ticket_list", "self"); out != "" {
		t.Errorf("ticket_list after the end: %q", out)
	}
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("it is still there")
	}
}
