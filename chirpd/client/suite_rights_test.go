package client_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

func testXattr(t *testing.T, ctx context.Context, c *client.Client, dir string, p *chirptest.Peer) {
	path := dir + "/f"
	ok(t, c.Putfile(ctx, path, 0o644, 1, strings.NewReader("1")))
	if err := syscall.Setxattr(p.Root+path, "user.probe", []byte("1"), 0); errors.Is(err, syscall.ENOTSUP) {
		t.Skip("the file system of /tmp has no extended attributes")
	}
	ok(t, c.Setxattr(ctx, path, "user.a", []byte("x\x00\ny"), 0))
	v, err := c.Getxattr(ctx, path, "user.a")
	ok(t, err)
	if string(v) != "x\x00\ny" {
		t.Errorf("the attribute is %q", v)
	}
	names, err := c.Listxattr(ctx, path)
	ok(t, err)
	if !slices.Contains(names, "user.a") {
		t.Errorf("attributes are %q", names)
	}
	ok(t, c.Removexattr(ctx, path, "user.a"))
	_, err = c.Getxattr(ctx, path, "user.a")
	fails(t, err, syscall.ENODATA)
}

func testRights(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	ok(t, c.Setacl(ctx, dir, "unix:some_body", "rl"))
	me := "unix:" + chirptest.User(t)
	rights := func() map[string]string {
		acl, err := c.Getacl(ctx, dir)
		ok(t, err)
		m := map[string]string{}
		for _, e := range acl {
			m[e.Subject] = e.Rights
		}
		return m
	}
	if m := rights(); m["unix:some_body"] != "rl" || !strings.Contains(m[me], "a") {
		t.Errorf("rights are %v", m)
	}
	ok(t, c.Setacl(ctx, dir, "unix:some_body", ""))
	if m := rights(); m["unix:some_body"] != "" {
		t.Errorf("rights are %v after one entry was removed", m)
	}
	ok(t, c.Setacl(ctx, dir, me, "rl"))
	fails(t, c.Putfile(ctx, dir+"/f", 0o644, 1, strings.NewReader("1")), syscall.EACCES)
}

func testTickets(t *testing.T, ctx context.Context, c *client.Client, dir string, p *chirptest.Peer) {
	ok(t, c.Mkdir(ctx, dir+"/in", 0o755))
	ok(t, c.Putfile(ctx, dir+"/in/f", 0o644, 1, strings.NewReader("1")))
	ticket, err := auth.NewTicket(p.Addr, time.Now().Add(time.Hour))
	ok(t, err)
	ok(t, c.TicketRegister(ctx, "self", time.Hour, ticket.PublicPEM()))
	ok(t, c.TicketModify(ctx, ticket.Digest(), dir+"/in", "rl"))

	list, err := c.TicketList(ctx, "self")
	ok(t, err)
	if !slices.Equal(list, []string{ticket.Digest()}) {
		t.Errorf("tickets are %q, want %q", list, ticket.Digest())
	}
	got, err := c.TicketGet(ctx, ticket.Digest())
	ok(t, err)
	rights := client.ACLRight{Path: dir + "/in", Rights: "rl"}
	if got.Subject != "unix:"+chirptest.User(t) || !slices.Contains(got.Rights, rights) ||
		got.Left < 59*time.Minute || got.Left > time.Hour || !bytes.Equal(bytes.TrimSpace(got.PublicPEM), bytes.TrimSpace(ticket.PublicPEM())) {
		t.Errorf("the ticket is %+v", got)
	}

	by := dial(t, p.Addr, client.Options{Methods: []auth.Method{ticket.Method()}})
	who, err := by.Whoami(ctx)
	ok(t, err)
	t.Logf("with the ticket we are %s", who)
	_, err = by.Getlongdir(ctx, dir+"/in")
	ok(t, err)
	b := make([]byte, 10)
	_, err = by.GetfileMax(ctx, dir+"/in/f", b)
	ok(t, err)
	fails(t, by.Unlink(ctx, dir+"/in/f"), syscall.EACCES)
	fails(t, by.Mkdir(ctx, dir+"/out", 0o755), syscall.EACCES)

	ok(t, c.TicketDelete(ctx, ticket.Digest()))
	late := dial(t, p.Addr, client.Options{Methods: []auth.Method{ticket.Method()}})
	_, err = late.Whoami(ctx)
	fails(t, err, syscall.EACCES)
	if !errors.Is(err, wire.NotAuthenticated) {
		t.Errorf("error is %v", err)
	}
}

func testLongLine(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	// A real server drops the client whose line has more, its LF included.
	long := func(n int) string { return dir + "/" + strings.Repeat("x", n-len("stat \n")-len(dir)-1) }
	_, err := c.Stat(ctx, long(wire.MaxPeerLine+1))
	fails(t, err, syscall.ENAMETOOLONG)
	_, err = c.Stat(ctx, long(wire.MaxPeerLine))
	fails(t, err, syscall.ENAMETOOLONG) // the server's own answer: a name has at most 255 bytes
	_, err = c.Stat(ctx, dir)
	ok(t, err)
}
