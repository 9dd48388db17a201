package client

import (
	"context"
	"strings"
	"time"

	"skeletonkey/chirpd/wire"
)

// ACLEntry is one line of a directory's ACL.
type ACLEntry struct {
	Subject string // METHOD:NAME, maybe with *
	Rights  string // letters; v is followed by its rights in brackets
}

// Getacl lists the ACL that holds in the directory path.
func (c *Client) Getacl(ctx context.Context, path string) ([]ACLEntry, error) {
	var acl []ACLEntry
	k := c.call("getacl", path, pure, &wire.Getacl{Path: path})
	k.read = func(in *conn, _ int64) error {
		acl = nil
		return in.lines(func(line []byte) error {
			subject, rights, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
			acl = append(acl, ACLEntry{subject, strings.TrimSpace(rights)})
			return nil
		})
	}
	if _, err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return acl, nil
}

// Setacl sets the rights of subject in the directory path; none at all ("")
// removes its entry. It needs the right a.
func (c *Client) Setacl(ctx context.Context, path, subject, rights string) error {
	if rights == "" {
		rights = "n" // real servers want the word; n is none
	}
	return c.change(ctx, path, &wire.Setacl{Path: path, Subject: subject, Rights: rights})
}

// Resetacl gives the caller rights in the directory path, and takes everybody
// else's.
func (c *Client) Resetacl(ctx context.Context, path, rights string) error {
	return c.change(ctx, path, &wire.Resetacl{Path: path, Rights: rights})
}

// Ticket is what a server tells about a ticket.
type Ticket struct {
	Subject   string // whose rights it has at most
	PublicPEM []byte
	Left      time.Duration // until it expires
	Rights    []ACLRight
}

// ACLRight is the mask of a ticket at a directory and below.
type ACLRight struct{ Path, Rights string }

// ticketName is the name of a ticket on the wire; digest may have the prefix.
func ticketName(digest string) string {
	return "ticket:" + strings.TrimPrefix(digest, "ticket:")
}

// TicketRegister makes the public key a ticket of subject, "self" for the caller,
// for the time given, in whole seconds.
func (c *Client) TicketRegister(ctx context.Context, subject string, valid time.Duration, publicPEM []byte) error {
	k := c.call("ticket_register", "", once, &wire.TicketRegister{
		Subject: subject, Duration: int64(valid / time.Second), Length: int64(len(publicPEM)),
	})
	k.data = publicPEM
	_, err := c.do(ctx, k)
	return err
}

// TicketModify sets the mask of a ticket at the directory path and below.
func (c *Client) TicketModify(ctx context.Context, digest, path, rights string) error {
	return c.change(ctx, path, &wire.TicketModify{Ticket: ticketName(digest), Path: path, Rights: rights})
}

// TicketDelete ends a ticket.
func (c *Client) TicketDelete(ctx context.Context, digest string) error {
	return c.change(ctx, "", &wire.TicketDelete{Ticket: ticketName(digest)})
}

// TicketGet returns what the server knows of a ticket.
func (c *Client) TicketGet(ctx context.Context, digest string) (Ticket, error) {
	var t Ticket
	k := c.call("ticket_get", "", pure, &wire.TicketGet{Ticket: ticketName(digest)})
	k.read = func(in *conn, _ int64) (err error) {
		t, err = in.ticket()
		return err
	}
	if _, err := c.do(ctx, k); err != nil {
		return Ticket{}, err
	}
	return t, nil
}

// maxKey is the longest public key that is believed, in bytes of PEM.
const maxKey = 64 << 10

func (c *conn) ticket() (t Ticket, err error) {
	subject, err := c.textBlob(maxDigest)
	if err != nil {
		return t, err
	}
	t.Subject = string(subject)
	if t.PublicPEM, err = c.textBlob(maxKey); err != nil {
		return t, err
	}
	left, err := c.number()
	if err != nil {
		return t, err
	}
	t.Left = time.Duration(left) * time.Second
	for {
		line, err := c.text()
		if err != nil || string(line) == "0" {
			return t, err
		}
		path, rights, ok := strings.Cut(string(line), " ")
		if !ok {
			return t, outOfStep("%.80q where a ticket's rights belong", line)
		}
		t.Rights = append(t.Rights, ACLRight{path, rights})
	}
}

// number reads a line with a number.
func (c *conn) number() (int64, error) {
	line, err := c.text()
	if err != nil {
		return 0, err
	}
	n, err := wire.ParseInt(line)
	if err != nil {
		return 0, outOfStep("%v", err)
	}
	return n, nil
}

// textBlob reads a line with a length and so many bytes, at most limit.
func (c *conn) textBlob(limit int64) ([]byte, error) {
	n, err := c.number()
	if err != nil {
		return nil, err
	}
	if n < 0 {
		return nil, outOfStep("a length of %d", n)
	}
	return c.blob(n, limit)
}

// TicketList returns the digests of the tickets of subject; "self" for the
// caller's, "all" for everybody's.
func (c *Client) TicketList(ctx context.Context, subject string) ([]string, error) {
	var digests []string
	k := c.call("ticket_list", "", pure, &wire.TicketList{Subject: subject})
	k.read = func(in *conn, _ int64) error {
		digests = nil
		for {
			name, err := in.textBlob(maxDigest)
			if err != nil || len(name) == 0 {
				return err
			}
			digests = append(digests, strings.TrimPrefix(string(name), "ticket:"))
		}
	}
	if _, err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return digests, nil
}
