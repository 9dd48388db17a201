package run

import (
	"archive/tar"
	"bytes"
	"context"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/generator/job"
)

// TestBadApplication: an archive that is not what it should be ends the job before
// anything runs.
func TestBadApplication(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo never`))
	other := n.job()
	n.app = append(n.app, make([]byte, 512)...)
	n.run(helperSpec{Job: other}, how{}).expectError(t, job.ExitBadDownload, "checksum", n.web.URL)

	n.app = n.app[:700]
	n.run(helperSpec{Job: n.job()}, how{}).expectError(t, job.ExitBadDownload, "truncated")

	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	check(t, w.WriteHeader(&tar.Header{Name: "m", Typeflag: tar.TypeSymlink, Linkname: n.dir}))
	check(t, w.WriteHeader(&tar.Header{Name: "m/evil", Mode: 0o644}))
	check(t, w.Close())
	n.app = buf.Bytes()
	n.run(helperSpec{Job: n.job()}, how{}).expectError(t, job.ExitBadDownload, `"m"`)
	if exists(n.dir + "/evil") {
		t.Error("written outside")
	}

	n.web.Config.Handler = http.NotFoundHandler()
	res := n.run(helperSpec{Job: n.job()}, how{})
	res.expectError(t, job.ExitBadDownload, "404", n.web.URL)
	if strings.Contains(res.log, "404") {
		t.Errorf("said twice:\n%s", res.log)
	}
}

// TestWebServerAway: a web server that cannot be reached is worth another try.
func TestWebServerAway(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo never`))
	n.web.Close()
	res := n.run(helperSpec{Job: n.job()}, how{})
	res.expectError(t, job.ExitUnreachable, "refused", n.web.URL)
	if said := strings.Count(res.log, "refused"); said != 4 { // of five attempts the last one is the error
		t.Errorf("%d failures in the log:\n%s", said, res.log)
	}
}

// TestNameTaken: an archive cannot put something in the place of the data.
func TestNameTaken(t *testing.T) {
	t.Parallel()
	n := newNode(t, map[string]string{"app.sh": "#!/bin/sh\necho never\n", "in/data": "not the data\n"})
	n.run(n.dataJob(), how{}).expectError(t, job.ExitBadDownload, `"in"`, "/in")
}

// TestCheckTicket: what is wrong with a ticket by itself is found before anything is
// made.
func TestCheckTicket(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	ticket, err := auth.NewTicket("h:1", now)
	check(t, err)
	other, err := auth.NewTicket("h:1", now)
	check(t, err)
	elsewhere, unbound := *ticket, *ticket
	elsewhere.Server, unbound.Server = "h:2", ""
	j := job.Job{Server: "h:1", Dirs: []job.Dir{{Path: "/", Name: "x"}}, Ticket: job.Ticket{Digest: ticket.Digest(), Expires: now.Unix()}}
	for name, c := range map[string]struct {
		ticket *auth.Ticket
		after  time.Duration
		text   string
	}{
		"good":           {ticket, -time.Hour, ""},
		"within leeway":  {ticket, auth.Leeway, ""},
		"after leeway":   {ticket, auth.Leeway + time.Second, "ended at 2027-01-15T08:00:00Z"},
		"long ago":       {ticket, time.Hour, "ended"},
		"missing":        {nil, 0, "missing"},
		"another one":    {other, 0, "not the one"},
		"another server": {&elsewhere, 0, `"h:2"`},
		"any server":     {&unbound, 0, "h:1"},
	} {
		err := checkTicket(&j, c.ticket, now.Add(c.after))
		if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := checkTicket(&job.Job{}, nil, now); err != nil {
		t.Errorf("a job without data: %v", err)
	}
}

// TestTicketRefused: an ended ticket, and one that the server does not take.
func TestTicketRefused(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo never`))
	ended := n.dataJob()
	ticket, err := auth.ParseTicket([]byte(ended.Ticket))
	check(t, err)
	ticket.Expires = time.Now().Add(-2 * auth.Leeway)
	ended.Ticket, ended.Job.Ticket.Expires = string(ticket.Format()), ticket.Expires.Unix()
	res := n.run(ended, how{})
	res.expectError(t, job.ExitTicket, "ended", "generate the job again")
	if strings.Contains(res.log, "phase") {
		t.Errorf("something was done before:\n%s", res.log)
	}

	revoked := n.dataJob()
	c := client.New(n.peer.Addr, client.Options{})
	defer c.Close()
	check(t, c.TicketDelete(context.Background(), revoked.Job.Ticket.Digest))
	n.run(revoked, how{}).expectError(t, job.ExitTicket, n.peer.Addr)
}

// TestDataMissing: a directory that is not there, is no directory, or is not open to
// the ticket is named, and the application does not start.
func TestDataMissing(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo never`))
	n.dataJob()
	for _, c := range []struct {
		spoil func(j *job.Job)
		exit  int
		text  string
	}{
		{func(*job.Job) { check(t, os.RemoveAll(n.peer.Root+"/in/x")) }, job.ExitUsage, "/in/x: no such file"},
		{func(*job.Job) {
			check(t, os.RemoveAll(n.peer.Root+"/in/x"))
			check(t, os.WriteFile(n.peer.Root+"/in/x", nil, 0o644))
		}, job.ExitUsage, "/in/x: not a directory"},
		{func(j *job.Job) { j.Dirs[2].Path = "/" }, job.ExitTicket, n.peer.Addr + "/: not authorized: this directory"},
		{func(*job.Job) { check(t, os.RemoveAll(n.peer.Root+"/out")) }, job.ExitTicket, "/out: not authorized: this directory"},
	} {
		check(t, os.RemoveAll(n.peer.Root+"/in/x"))
		check(t, os.Mkdir(n.peer.Root+"/in/x", 0o755))
		spec := n.dataJob(job.Dir{Path: "/in", Name: "in"}, job.Dir{Path: "/in/x", Name: "x"}, job.Dir{Path: "/out", Name: "out", Write: true})
		c.spoil(spec.Job)
		n.run(spec, how{}).expectError(t, c.exit, c.text)
	}
}

// TestServerAway: a data server that does not answer in time.
func TestServerAway(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo never`))
	spec := n.dataJob()
	spec.Connect = 300 * time.Millisecond
	n.peer.Stop()
	n.run(spec, how{}).expectError(t, job.ExitUnreachable, n.peer.Addr, "has not answered for 300ms")
}

// TestUsage: a job that makes no sense is refused.
func TestUsage(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	spec := helperSpec{Job: n.job()}
	spec.Job.Application.Script = ""
	n.run(spec, how{}).expectError(t, job.ExitUsage, "script")
	n.run(helperSpec{}, how{}).expectError(t, job.ExitUsage, "no job")
}
