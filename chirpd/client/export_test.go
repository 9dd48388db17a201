package client

import (
	"context"
	"net/netip"
	"time"
)

// WithKeepAlive returns o with another period of keep-alive.
func (o Options) WithKeepAlive(d time.Duration) Options {
	o.keepAlive = d
	return o
}

// WithAddresses returns o with a name server that knows every name by addrs.
func (o Options) WithAddresses(addrs ...string) Options {
	o.resolve = func(context.Context, string, string) (ips []netip.Addr, err error) {
		for _, a := range addrs {
			ips = append(ips, netip.MustParseAddr(a))
		}
		return ips, nil
	}
	return o
}
