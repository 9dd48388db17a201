package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stagger is how long an address may be silent before the next one is tried beside
// it.
const stagger = 250 * time.Millisecond

// dialAny connects to whichever address of the server answers first.
func (c *Client) dialAny(ctx context.Context) (net.Conn, error) {
	if c.bad != nil {
		return nil, &refusal{c.bad}
	}
	host, port, err := net.SplitHostPort(c.server)
	if err != nil {
		return nil, err
	}
	ips := []netip.Addr{{}}
	if ips[0], err = netip.ParseAddr(host); err != nil {
		if ips, err = c.opt.resolve(ctx, "ip", host); err != nil {
			return nil, err
		}
	}
	addrs := make([]string, 0, len(ips))
	for _, ip := range interleave(ips) {
		addrs = append(addrs, net.JoinHostPort(ip.Unmap().String(), port))
	}
	return race(ctx, addrs, c.opt.Dial)
}

// interleave lets the families of addresses take turns, the first one's first, so
// that a dead family costs one turn.
func interleave(ips []netip.Addr) []netip.Addr {
	var first, second []netip.Addr
	for _, ip := range ips {
		if ip.Unmap().Is4() == ips[0].Unmap().Is4() {
			first = append(first, ip)
		} else {
			second = append(second, ip)
		}
	}
	mixed := make([]netip.Addr, 0, len(ips))
	for i := range max(len(first), len(second)) {
		if i < len(first) {
			mixed = append(mixed, first[i])
		}
		if i < len(second) {
			mixed = append(mixed, second[i])
		}
	}
	return mixed
}

// race dials addrs in their order, each when the one before has failed or has been
// silent for stagger, and returns the first connection. The dials of the others
// have ended when it returns.
func race(ctx context.Context, addrs []string, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		nc  net.Conn
		err error
	}
	results := make(chan result)
	next := time.NewTimer(0)
	defer next.Stop()
	var won net.Conn
	var failures []error
	started, ended := 0, 0
	for ended < len(addrs) {
		select {
		case <-next.C:
			if started == len(addrs) || won != nil {
				continue
			}
			addr := addrs[started]
			started++
			go func() {
				nc, err := dial(ctx, "tcp", addr)
				results <- result{nc, err}
			}()
			next.Reset(stagger)
		case r := <-results:
			ended++
			switch {
			case r.err != nil:
				failures = append(failures, r.err)
				next.Reset(0)
			case won != nil:
				_ = r.nc.Close()
			default:
				won = r.nc
				cancel()
			}
			if won != nil && ended == started {
				return won, nil
			}
		}
	}
	if len(failures) == 0 {
		return nil, fmt.Errorf("no address")
	}
	return nil, errors.Join(failures...)
}

// dialer is how connections are made unless Options.Dial says otherwise: a host
// that has vanished is noticed within limit, or a minute when nothing is asked of it.
func dialer(limit time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3},
		Control: func(_, _ string, rc syscall.RawConn) error {
			return rc.Control(func(fd uintptr) {
				// Best effort: an old kernel goes on without it, and look notices too.
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(limit.Milliseconds()))
			})
		},
	}
	return d.DialContext
}
