package generator

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/generator/job"
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dial connects with the methods given; with none, by unix.
func dial(t *testing.T, addr string, methods ...auth.Method) *client.Client {
	t.Helper()
	c := client.New(addr, client.Options{Methods: methods, Timeout: 10 * time.Second})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// jobOn is a Job that reads /records and writes /results on a server.
func jobOn(t *testing.T, addr string) *job.Job {
	t.Helper()
	j := readyJob(t)
	j.Server, j.Ticket = addr, job.Ticket{Seconds: 3600}
	return j
}

// The ticket gives what the job needs, and no more.
func TestTicketRights(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		ctx, owner := within(t), dial(t, p.Addr)
		for _, dir := range []string{"/records", "/results", "/recordsother", "/private"} {
			ok(t, owner.Mkdir(ctx, dir, 0o755))
			ok(t, owner.Putfile(ctx, dir+"/f", 0o644, 1, strings.NewReader("x")))
		}
		before, err := owner.Getacl(ctx, "/results")
		ok(t, err)
		j := jobOn(t, p.Addr)
		output := filepath.Join(t.TempDir(), "job.sh")
		ok(t, Generate(ctx, Request{Job: j, Server: owner, Output: output, Version: "1.2.3"}))

		after, err := owner.Getacl(ctx, "/results")
		ok(t, err)
		if d := cmp.Diff(before, after); d != "" {
			t.Errorf("an access list that was good was changed (-before +after):\n%s", d)
		}
		checkRegistered(t, owner, j)
		checkUse(t, dial(t, p.Addr, ticketIn(t, output, j).Method()), p.Real)
	})
}

// checkRegistered compares what the server knows of the ticket with the Job.
func checkRegistered(t *testing.T, owner *client.Client, j *job.Job) {
	t.Helper()
	ctx := within(t)
	got, err := owner.TicketGet(ctx, j.Ticket.Digest)
	ok(t, err)
	want := []client.ACLRight{{Path: "/records", Rights: "rl"}, {Path: "/results", Rights: "rwld"}}
	slices.SortFunc(got.Rights, func(a, b client.ACLRight) int { return strings.Compare(a.Path, b.Path) })
	got.Rights = slices.DeleteFunc(got.Rights, func(r client.ACLRight) bool { return r.Rights == "n" }) // of the root
	for i := range got.Rights {
		got.Rights[i].Rights = strings.ReplaceAll(got.Rights[i].Rights, "p", "") // w implies it
	}
	if d := cmp.Diff(want, got.Rights); d != "" {
		t.Errorf("rights (-want +got):\n%s", d)
	}
	if got.Left < 59*time.Minute || got.Left > time.Hour {
		t.Errorf("lasts %v", got.Left)
	}
	if left := time.Until(time.Unix(j.Ticket.Expires, 0)); left < 59*time.Minute || left > time.Hour {
		t.Errorf("the job says that it lasts %v", left)
	}
}

// ticketIn finds the ticket in a job script.
func ticketIn(t *testing.T, file string, j *job.Job) *auth.Ticket {
	t.Helper()
	script, err := os.ReadFile(file)
	ok(t, err)
	_, rest, found := bytes.Cut(script, []byte("\nSKELETONKEY_JOB\n"))
	if !found {
		t.Fatal("no ticket after the job")
	}
	ticket, err := auth.ParseTicket(rest)
	ok(t, err)
	if ticket.Server != j.Server || ticket.Digest() != j.Ticket.Digest || ticket.Expires.Unix() != j.Ticket.Expires ||
		ticket.Key.N.BitLen() != 2048 || ticket.Subject == "" {
		t.Errorf("ticket for %s of %s, digest %s, until %v", ticket.Server, ticket.Subject, ticket.Digest(), ticket.Expires)
	}
	return ticket
}

// checkUse tries what the ticket must allow, and what it must not.
func checkUse(t *testing.T, c *client.Client, real bool) {
	t.Helper()
	ctx := within(t)
	put := func(path string) error { return c.Putfile(ctx, path, 0o644, 1, strings.NewReader("y")) }
	get := func(path string) error {
		_, err := c.Getfile(ctx, path, &bytes.Buffer{})
		return err
	}
	for what, err := range map[string]error{
		"read records": get("/records/f"), "write results": put("/results/g"), "read results": get("/results/g"),
		"delete in results": c.Unlink(ctx, "/results/f"), "mkdir in results": c.Mkdir(ctx, "/results/d", 0o755),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"write records": put("/records/g"), "delete in records": c.Unlink(ctx, "/records/f"), "read elsewhere": get("/private/f"),
		"write elsewhere": put("/private/g"), "set rights": c.Setacl(ctx, "/results", "unix:x", "rl"),
		"read a name that begins alike": get("/recordsother/f"),
	} {
		if err == nil && !(real && strings.Contains(what, "alike")) { // the real server's fault
			t.Errorf("%s: allowed", what)
		}
	}
}

// What the owner lacks is added for that very subject; whoever has a name that begins like his, and
// entries that merely match him, stay as they are.
func TestTicketCompletesAccessList(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		ctx, owner := within(t), dial(t, p.Addr)
		subject := "unix:" + chirptest.User(t)
		ok(t, owner.Mkdir(ctx, "/records", 0o755))
		ok(t, owner.Mkdir(ctx, "/results", 0o755))
		ok(t, owner.Setacl(ctx, "/results", subject+"by", "rl"))
		ok(t, owner.Setacl(ctx, "/results", "unix:*", "l"))
		ok(t, owner.Setacl(ctx, "/results", subject, "ra"))
		_, err := NewTicket(ctx, owner, jobOn(t, p.Addr))
		ok(t, err)
		list, err := owner.Getacl(ctx, "/results")
		ok(t, err)
		got := map[string]string{}
		for _, e := range list {
			got[e.Subject] = strings.ReplaceAll(e.Rights, "p", "") // w implies it
		}
		if d := cmp.Diff(map[string]string{subject: "rwlda", subject + "by": "rl", "unix:*": "l"}, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// Directories to write are made, with what is missing above them.
func TestTicketMakesDirectories(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		ctx, owner := within(t), dial(t, p.Addr)
		j := jobOn(t, p.Addr)
		j.Dirs = []job.Dir{{Path: "/runs/2024/first", Name: "first", Write: true}}
		_, err := NewTicket(ctx, owner, j)
		ok(t, err)
		if st, err := owner.Stat(ctx, "/runs/2024/first"); err != nil || !st.IsDir() {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

// Case 7, and its kind: what fails leaves no ticket on the server and no script.
func TestNoTicketIsLeft(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		ctx, owner := within(t), dial(t, p.Addr)
		ok(t, owner.Mkdir(ctx, "/results", 0o755))
		ok(t, owner.Mkdir(ctx, "/locked", 0o755))
		ok(t, owner.Setacl(ctx, "/locked", "unix:"+chirptest.User(t), "rl"))
		ok(t, owner.Putfile(ctx, "/file", 0o644, 1, strings.NewReader("x")))
		good := []job.Dir{{Path: "/results", Name: "results", Write: true}}
		dir := t.TempDir()
		for name, c := range map[string]struct {
			dirs   []job.Dir
			output string
			proxy  string
			says   string
		}{
			"missing":     {[]job.Dir{{Path: "/records", Name: "records"}}, "job.sh", "", "count from export_base"},
			"a file":      {[]job.Dir{{Path: "/file", Name: "file", Write: true}}, "job.sh", "", "/file"},
			"no rights":   {[]job.Dir{{Path: "/locked", Name: "locked", Write: true}}, "job.sh", "", "has the rights rl there and the job needs rwld"},
			"no output":   {good, "missing/job.sh", "", "missing/job.sh"},
			"no proxy":    {good, "job.sh", "/nonexistent/x509", "/nonexistent/x509"},
			"odd proxy":   {good, "job.sh", "/proc/self/environ", "not plain text"},
			"empty proxy": {good, "job.sh", "/dev/null", "is empty"},
		} {
			j := jobOn(t, p.Addr)
			j.Dirs, j.UserProxy = c.dirs, c.proxy
			err := Generate(ctx, Request{Job: j, Server: owner, Output: filepath.Join(dir, c.output), Version: "1"})
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		j := jobOn(t, p.Addr) // what is asked for without a job file has no export_base
		j.Dirs = []job.Dir{{Path: "/records", Name: "records"}}
		if _, err := NewTicket(ctx, owner, j); err == nil || !strings.Contains(err.Error(), "/records") || strings.Contains(err.Error(), "export_base") {
			t.Errorf("ticket for what is missing: %v", err)
		}
		if left, err := owner.TicketList(ctx, "self"); err != nil || len(left) > 0 {
			t.Errorf("tickets are left: %v, %v", left, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
			t.Errorf("files are left: %v, %v", files, err)
		}
	})
}

// A ticket that cannot get its rights is deleted, also when the user has given up meanwhile.
func TestHalfTicketIsDeleted(t *testing.T) {
	ctx, giveUp := context.WithCancel(within(t))
	deleted := make(chan string, 1)
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		for r := c.Request(); r != nil; r = c.Request() {
			switch r := r.(type) {
			case *wire.Whoami:
				c.Send("6\nunix:a")
			case *wire.StatPath:
				c.Send("0\n1 2 16877 2 0 0 0 4096 4096 8 0 0 0\n")
			case *wire.Getacl:
				c.Send("0\nunix:a rwlda\n\n")
			case *wire.TicketRegister:
				_, _ = c.R.Discard(int(r.Length))
				c.Send("0\n")
			case *wire.TicketModify:
				giveUp()
				c.Send("-2\n")
			case *wire.TicketDelete:
				deleted <- r.Ticket
				c.Send("0\n")
			default:
				c.Send("-8\n")
			}
		}
	})
	_, err := NewTicket(ctx, dial(t, addr, auth.Address()), jobOn(t, addr))
	if err == nil {
		t.Fatal("a ticket without rights was taken")
	}
	select {
	case name := <-deleted:
		if !strings.HasPrefix(name, "ticket:") {
			t.Errorf("deleted %q", name)
		}
	case <-within(t).Done():
		t.Errorf("the ticket was not deleted: %v", err)
	}
}

func TestGenerateWithoutData(t *testing.T) {
	j := readyJob(t)
	j.Dirs, j.Server, j.Ticket = nil, "", job.Ticket{Seconds: 60}
	output := filepath.Join(t.TempDir(), "job.sh")
	ok(t, Generate(within(t), Request{Job: j, Output: output, Version: "1"}))
	script, err := os.ReadFile(output)
	if err != nil || bytes.Contains(script, []byte("ticket-fd")) || bytes.Contains(script, []byte("PRIVATE KEY")) {
		t.Errorf("a ticket is in the script, or %v", err)
	}
}
