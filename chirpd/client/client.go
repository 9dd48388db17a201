package client

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// Options say how a Client connects. The zero value is good for a mount.
type Options struct {
	// Methods are offered in order, so the one that will be accepted belongs first:
	// every other costs a round trip. Nil is auth.Methods' default without tickets:
	// unix for a server on this machine.
	Methods []auth.Method

	// Timeout is how long a call waits for a server that is away before it fails,
	// counted from the last sign of life after the call began. Zero is
	// DefaultTimeout; negative is not at all: a call then fails with the first
	// attempt to connect that does.
	Timeout time.Duration

	// Stall is how long a connection on which calls wait may make no progress before
	// it is given up. Zero is DefaultStall; it is never longer than Timeout, unless
	// that is negative. Fsync and Close have ten times as much, and sixty times what
	// makes the server work for long (Hash, Rmall, Thirdput, whole files).
	Stall time.Duration

	// Conns is how many connections open files are spread over. Zero is 2.
	Conns int

	// Log gets lost connections (Info) and attempts (Debug). Nil is nowhere.
	Log *slog.Logger

	// Dial makes a connection to an IP address and port, and must end when ctx does.
	// Nil is a net.Dialer with keep-alive.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	resolve   func(ctx context.Context, network, host string) ([]netip.Addr, error)
	keepAlive time.Duration
	settle    time.Duration
}

// The defaults of Options.
const (
	DefaultTimeout = 10 * time.Minute
	DefaultStall   = time.Minute
)

// keepAlive is after how long without calls a connection with open files is kept
// alive, at the latest after twice that, and another one let go. A plain server
// drops idle clients after 60 s.
const keepAlive = 20 * time.Second

// settle is how long a server whose connection was lost has to finish the request
// that it was at work on, before writes are sent again: the first copy must not run
// after a newer write.
const settle = time.Second

func (o Options) withDefaults(server string) Options {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.Stall = cmp.Or(o.Stall, DefaultStall)
	if o.Timeout > 0 {
		o.Stall = min(o.Stall, o.Timeout)
	}
	o.Conns = max(cmp.Or(o.Conns, 2), 1)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Dial == nil {
		o.Dial = dialer(o.Stall)
	}
	if o.Methods == nil {
		o.Methods, _ = auth.Methods("", nil, server, "") // the default list has no unknown names
	}
	if o.resolve == nil {
		o.resolve = net.DefaultResolver.LookupNetIP
	}
	o.keepAlive, o.settle = cmp.Or(o.keepAlive, keepAlive), cmp.Or(o.settle, settle)
	return o
}

// Client speaks to one server over a few connections. It is safe for concurrent
// use. Close ends it.
type Client struct {
	server    string // host:port
	bad       error  // what is wrong with it
	opt       Options
	connected atomic.Bool // once, at least

	names *lane   // calls on paths
	whole *lane   // small whole files; everything on it only reads
	bulk  []*lane // open files

	mu      sync.Mutex // guards the following; taken after lane.mu, before File.mu
	closed  bool
	lent    map[*lane]struct{} // each to one call
	spare   []*lane            // may be lent
	files   map[*File]struct{} // open
	renames int                // under way
	moves   int                // renames that have ended
}

// New returns a Client of server, which may be written in each way that ParseURL
// takes; a path in it is ignored. It connects at the first call, and a server that
// cannot be understood fails that call.
func New(server string, o Options) *Client {
	hostPort, _, err := ParseURL(server)
	if err == nil {
		server = hostPort
	}
	c := &Client{
		server: server,
		bad:    err,
		opt:    o.withDefaults(server),
		lent:   make(map[*lane]struct{}),
		files:  make(map[*File]struct{}),
	}
	c.names, c.whole = newLane(c), newLane(c)
	for range c.opt.Conns {
		c.bulk = append(c.bulk, newLane(c))
	}
	return c
}

// Server is the server as host:port.
func (c *Client) Server() string { return c.server }

// Close ends all connections, and with them the files open on them. Calls under way
// fail with net.ErrClosed; what was started and not awaited may or may not have
// reached the server. It returns when nothing of the Client runs any more.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	lanes := append([]*lane{c.names, c.whole}, c.bulk...)
	lanes = append(lanes, c.spare...)
	for l := range c.lent {
		lanes = append(lanes, l)
	}
	c.mu.Unlock()
	for _, l := range lanes {
		l.close()
	}
	return nil
}

// url is path as errors show it.
func (c *Client) url(path string) string { return "chirp://" + c.server + wire.CleanPath(path) }

// spares is how many unused lanes are kept for the next call that needs one.
const spares = 4

// lend gives a lane to one call, which brings it back.
func (c *Client) lend() *lane {
	c.mu.Lock()
	defer c.mu.Unlock()
	var l *lane
	if n := len(c.spare); n > 0 {
		l, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		l = newLane(c)
		l.closed = c.closed
	}
	c.lent[l] = struct{}{}
	return l
}

func (c *Client) bringBack(l *lane) {
	c.mu.Lock()
	delete(c.lent, l)
	keep := len(c.spare) < spares && !c.closed
	if keep {
		c.spare = append(c.spare, l)
	}
	c.mu.Unlock()
	if !keep {
		l.close()
	}
}

// choose is the lane with the fewest open files, the first of them where several
// have as few.
func (c *Client) choose() *lane {
	var best *lane
	fewest := 0
	for _, l := range c.bulk {
		l.mu.Lock()
		if n := l.opens; best == nil || n < fewest {
			best, fewest = l, n
		}
		l.mu.Unlock()
	}
	best.mu.Lock()
	best.opens++
	best.mu.Unlock()
	return best
}

// othersWrite reports whether another open File of this client writes to f's file.
func (c *Client) othersWrite(f *File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.files {
		if g != f && g.flags.Writes() && g.opened.Dev == f.opened.Dev && g.opened.Ino == f.opened.Ino {
			return true
		}
	}
	return false
}
