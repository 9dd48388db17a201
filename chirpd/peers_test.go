package chirpd_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
)

// debian runs the chirp tools of Debian's coop-computing-tools against a server.
type debian struct {
	t    *testing.T
	addr string
	dir  string // where they run
}

func newDebian(t *testing.T, addr string) *debian {
	for _, tool := range []string{"chirp", "chirp_get", "chirp_put"} {
		if _, err := exec.LookPath(tool); err != nil {
			chirptest.Missing(t, "no "+tool+" here (Debian package coop-computing-tools)")
		}
	}
	return &debian{t, addr, t.TempDir()}
}

// try runs a tool; HOME is empty, so that no ticket or setting of the user's counts.
func (d *debian) try(args ...string) (stdout, stderr string, ok bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "HOME="+d.dir)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	return out.String(), log.String(), err == nil
}

func (d *debian) run(args ...string) string {
	d.t.Helper()
	out, log, ok := d.try(args...)
	if !ok {
		d.t.Fatalf("%q failed: %s%s", args, out, log)
	}
	return out
}

// chirp runs a command as the user of the test, by unix.
func (d *debian) chirp(args ...string) string {
	d.t.Helper()
	return d.run(append([]string{"chirp", "-t", "20", "-a", "unix", d.addr}, args...)...)
}

// byTicket runs a command with a ticket, which may be refused.
func (d *debian) byTicket(ticket string, args ...string) (stdout string, ok bool) {
	d.t.Helper()
	out, _, ok := d.try(append([]string{"chirp", "-t", "20", "-a", "ticket", "-i", ticket, d.addr}, args...)...)
	return out, ok
}

func (d *debian) file(name string, content []byte) string {
	d.t.Helper()
	path := filepath.Join(d.dir, name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// TestDebianTools does with Debian's tools what people do with them.
func TestDebianTools(t *testing.T) {
	p := chirptest.Server(t)
	d := newDebian(t, p.Addr)
	large := make([]byte, 9<<20+13)
	rand.Read(large)
	d.file("large", large)

	d.chirp("mkdir", "/data")
	d.run("chirp_put", "-a", "unix", "large", p.Addr, "/data/large")
	d.chirp("put", "large", "/data/again")
	d.run("chirp_get", "-a", "unix", p.Addr, "/data/large", "back")
	back, err := os.ReadFile(filepath.Join(d.dir, "back"))
	if err != nil || !bytes.Equal(back, large) {
		t.Fatalf("%d bytes came back of %d (%v)", len(back), len(large), err)
	}
	if out := d.run("chirp_get", "-a", "unix", p.Addr, "/data/again", "-"); out != string(large) {
		t.Errorf("%d bytes came back of %d", len(out), len(large))
	}
	// Without a size in front (a pipe): opened and written piece by piece.
	pipe := exec.Command("sh", "-c", "chirp_put -a unix -t 20 - "+p.Addr+" /data/piped <large")
	pipe.Dir = d.dir
	if out, err := pipe.CombinedOutput(); err != nil {
		t.Errorf("chirp_put from a pipe: %v: %s", err, out)
	}
	if got, _ := os.ReadFile(filepath.Join(p.Root, "data/piped")); !bytes.Equal(got, large) {
		t.Errorf("%d bytes of %d came through the pipe", len(got), len(large))
	}

	for _, name := range []string{"large", "again", "piped"} {
		if out := d.chirp("ls", "-la", "/data"); !strings.Contains(out, name) || !strings.Contains(out, "9437197") {
			t.Errorf("ls lacks %s: %s", name, out)
		}
	}
	d.chirp("mv", "/data/again", "/data/moved name")
	if out := d.chirp("ls", "/data"); out != "large\nmoved name\npiped\n" && strings.Count(out, "\n") != 3 {
		t.Errorf("ls: %q", out)
	}
	sum := d.chirp("md5", "/data/large")
	if out := d.chirp("md5", "/data/piped"); out[:32] != sum[:32] {
		t.Errorf("md5: %q, %q", out, sum)
	}
	if out := d.chirp("stat", "/data/large"); !strings.Contains(out, "9437197") {
		t.Errorf("stat: %q", out)
	}
	if out := d.chirp("whoami"); out != "unix:"+chirptest.User(t)+"\n" {
		t.Errorf("whoami: %q", out)
	}
	d.chirp("chmod", "700", "/data/large")
	d.chirp("ln", "-s", "large", "/data/link")
	d.chirp("rm", "/data/moved name")
	d.chirp("rm", "/data/link")
	if _, _, ok := d.try("chirp", "-t", "20", "-a", "unix", p.Addr, "get", "/data/link", "gone"); ok {
		t.Error("a file that was removed was read")
	}
	d.chirp("setacl", "/data", "unix:somebody", "rl")
	if out := d.chirp("getacl", "/data"); !strings.Contains(out, "unix:somebody rl") {
		t.Errorf("getacl: %q", out)
	}
	d.chirp("setacl", "/data", "unix:somebody", "n")
	if out := d.chirp("getacl", "/data"); strings.Contains(out, "unix:somebody") {
		t.Errorf("getacl: %q", out)
	}
	d.chirp("mkdir", "-p", "/deep/er/est")
	d.chirp("rmdir", "/deep/er/est")
	d.chirp("rm", "/data")
	if names, err := os.ReadDir(p.Root); err != nil || len(names) != 1 {
		t.Errorf("the export has %v (%v)", names, err)
	}
}

// TestDebianTickets makes and uses tickets with Debian's tools.
func TestDebianTickets(t *testing.T) {
	p := chirptest.Server(t)
	d := newDebian(t, p.Addr)
	d.file("f", []byte("content"))
	for _, dir := range []string{"/in", "/out", "/outside"} {
		d.chirp("mkdir", dir)
		d.chirp("put", "f", dir+"/f")
	}
	d.chirp("ticket_create", "-output", "t.ticket", "-bits", "1024", "-duration", "3600", "/in", "rl", "/out", "rwld")
	list := d.chirp("ticket_list", "self")
	if !strings.HasPrefix(list, "ticket:") || strings.Count(list, "\n") != 1 {
		t.Fatalf("ticket_list: %q", list)
	}
	if out := d.chirp("ticket_get", "t.ticket"); !strings.Contains(out, "/in rl") || !strings.Contains(out, "/out rwldp") {
		t.Errorf("ticket_get: %q", out)
	}
	for _, c := range []struct {
		ok   bool
		args []string
	}{
		{true, []string{"get", "/in/f", "got"}}, {true, []string{"ls", "/in"}}, {false, []string{"put", "f", "/in/new"}},
		{true, []string{"put", "f", "/out/new"}}, {true, []string{"rm", "/out/new"}}, {false, []string{"get", "/outside/f", "got2"}},
		{false, []string{"ls", "/"}}, {false, []string{"setacl", "/out", "unix:x", "r"}}, {true, []string{"mkdir", "/out/d"}},
		{true, []string{"put", "f", "/out/d/f"}}, {false, []string{"mv", "/out/d", "/in/d"}},
	} {
		if out, ok := d.byTicket("t.ticket", c.args...); ok != c.ok {
			t.Errorf("by ticket: %q succeeded %v: %s", c.args, ok, out)
		}
	}
	d.chirp("ticket_modify", "t.ticket", "/out", "rl")
	if _, ok := d.byTicket("t.ticket", "put", "f", "/out/new"); ok {
		t.Error("a mask that was taken back still lets write")
	}
	d.chirp("ticket_delete", "t.ticket")
	if out, ok := d.byTicket("t.ticket", "get", "/in/f", "got3"); ok {
		t.Errorf("a ticket that was deleted reads %q", out)
	}
	if out := d.chirp("ticket_list", "self"); out != "" {
		t.Errorf("ticket_list: %q", out)
	}
}
