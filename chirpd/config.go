package chirpd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
)

// Config says what a Server exports, to whom, and within which limits. Only Root
// and a way to authenticate are needed. A limit of zero is the default named at it.
type Config struct {
	// Root is the exported directory.
	Root string
	// Exports, instead of Root, are directories that are shown under one root, each
	// confined on its own: no link leads from one to another, and renames and links
	// between them are CROSS_DEVICE_LINK. The root itself can be listed by everybody
	// who is let in. It needs StateDir.
	Exports []Export
	// ReadOnly refuses every change.
	ReadOnly bool

	// Verifiers are the ways to authenticate, beside tickets, for which the server
	// has its own.
	Verifiers []auth.Verifier
	// Tickets lets clients in by ticket and register tickets. It needs StateDir.
	Tickets bool
	// StateDir holds the server's own state: the tickets, the sizes of allocations. It is made, with mode
	// 0700, where it is missing. Nothing is kept in Root but ACLs. Within an export that
	// may be written it must lie below a name that begins with ".__", out of clients' reach.
	StateDir string

	// DefaultACL is the text of the ACL for directories that have none. Empty: the
	// user who runs the server and the owner of Root, both by unix, may do
	// everything.
	DefaultACL string
	// InheritDefaultACL gives a directory without an ACL that of the nearest
	// directory above that has one; DefaultACL only where there is none.
	InheritDefaultACL bool

	// PeerMethods are how this server proves who it is to another one, for whoareyou
	// and thirdput. Default: hostname, then address.
	PeerMethods []auth.Method
	// PeerDial makes a connection to another server, by IP address and port. Default: a
	// net.Dialer; whoever may use the server may let it connect anywhere.
	PeerDial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Superuser is a subject (unix:root) that may do everything everywhere, whatever
	// the ACLs say. Empty: nobody.
	Superuser string
	// GroupURL is where groups are looked up: an entry group:NAME of an ACL stands for
	// the subjects that the text at GroupURL/NAME lists, one a line. Empty: groups have
	// no members.
	GroupURL string
	// GroupCache is for how long a group's list is believed. Default 15 minutes.
	GroupCache time.Duration

	// RootQuota is how many bytes each export may hold; 0: as many as the disk has.
	// Files are counted by their lengths; see also mkalloc.
	RootQuota int64
	// FreeSpace is how many bytes writers leave free on the disk.
	FreeSpace int64

	// Catalog is where the server announces itself: nowhere unless told.
	Catalog Catalog

	// MaxOpen is how many files a client may have open at a time. Default 1024.
	MaxOpen int
	// MaxClients is how many connections there may be in all; 0: no limit.
	MaxClients int
	// MaxPerAddress is how many connections one address may have. Default 1024: the
	// jobs of a whole cluster may come from one address.
	MaxPerAddress int
	// AuthTimeout is the time to authenticate in. Default 1 minute.
	AuthTimeout time.Duration
	// IdleTimeout ends a connection that has asked nothing for so long, and closes
	// its files. Default 1 hour: an idle client costs some 20 KiB, and clients
	// that lost the network are found out by TCP's keep-alive. (The real server
	// waits 60 seconds.)
	IdleTimeout time.Duration
	// StallTimeout ends a connection on which a transfer made no progress for so
	// long. Default 1 hour, as in the real server.
	StallTimeout time.Duration

	// Log gets a line for each connection, when it ends, and for each refused
	// request. nil: nothing is logged. Tickets and keys never get there.
	Log *slog.Logger
}

func (c *Config) setDefaults() {
	setDefault(&c.MaxOpen, 1024)
	setDefault(&c.GroupCache, 15*time.Minute)
	setDefault(&c.MaxPerAddress, 1024)
	setDefault(&c.AuthTimeout, time.Minute)
	setDefault(&c.IdleTimeout, time.Hour)
	setDefault(&c.StallTimeout, time.Hour)
	c.Catalog.setDefaults()
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v == 0 {
		*v = d
	}
}

// check finds what no server could run with.
func (c *Config) check() error {
	switch {
	case (c.Root == "") == (len(c.Exports) == 0):
		return fmt.Errorf("chirpd: either one directory to export is needed, or several with names")
	case len(c.Verifiers) == 0 && !c.Tickets:
		return fmt.Errorf("chirpd: no way to authenticate, so nobody could use the server")
	case min(c.AuthTimeout, c.IdleTimeout, c.StallTimeout, c.GroupCache, c.Catalog.Interval) < 0:
		return fmt.Errorf("chirpd: a time limit is negative")
	case c.Tickets && c.StateDir == "":
		return fmt.Errorf("chirpd: tickets need a state directory to be kept in")
	}
	if err := errors.Join(c.checkExports(), c.checkState()); err != nil {
		return err
	}
	for _, v := range c.Verifiers {
		if v.Name() == ticketMethod {
			return fmt.Errorf("chirpd: the verifier for tickets is the server's own (Config.Tickets)")
		}
	}
	if _, err := acl.Parse([]byte(c.DefaultACL)); err != nil {
		return fmt.Errorf("chirpd: default ACL: %w", err)
	}
	return nil
}
