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

// WithResolver returns o with another name server.
func (o Options) WithResolver(r func(ctx context.Context, network, host string) ([]netip.Addr, error)) Options {
	o.resolve = r
	return o
}

// WithSettle returns o with another time for servers to finish.
func (o Options) WithSettle(d time.Duration) Options {
	o.settle = d
	return o
}
