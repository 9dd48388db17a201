package client

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestRace is case 13: among refused, silent and good addresses the good one is found
// in bounded time, whatever the order.
func TestRace(t *testing.T) {
	for _, addrs := range [][]string{
		{"good"},
		{"refused", "silent", "good"},
		{"silent", "silent", "refused", "good"},
		{"good", "silent"},
		{"slow", "good"},
		{"good", "good", "good"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &fakeNet{}
			begin := time.Now()
			nc, err := race(context.Background(), addrs, d.dial)
			if err != nil {
				t.Fatalf("%v: %v", addrs, err)
			}
			if took := time.Since(begin); took > time.Duration(len(addrs))*stagger {
				t.Errorf("%v: took %v", addrs, took)
			}
			_ = nc.Close()
			if n := d.open.Load(); n != 0 {
				t.Errorf("%v: %d connections were left open", addrs, n)
			}
		})
	}
}

func TestRaceFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeNet{}
		_, err := race(context.Background(), []string{"refused", "refused"}, d.dial)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("two refusals: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err = race(ctx, []string{"silent", "refused"}, d.dial); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one silent for ever: %v", err)
		}
		if _, err = race(ctx, nil, d.dial); err == nil {
			t.Error("no address: no error")
		}
	})
}

// fakeNet has hosts that behave as their names say.
type fakeNet struct{ open atomic.Int64 }

type fakeConn struct {
	net.Conn
	net *fakeNet
}

func (c *fakeConn) Close() error {
	c.net.open.Add(-1)
	return nil
}

func (n *fakeNet) dial(ctx context.Context, _, addr string) (net.Conn, error) {
	switch addr {
	case "refused":
		return nil, syscall.ECONNREFUSED
	case "silent":
		<-ctx.Done()
		return nil, ctx.Err()
	case "slow": // answers although nobody waits any more
		time.Sleep(stagger + time.Millisecond)
	}
	n.open.Add(1)
	return &fakeConn{net: n}, nil
}

func TestInterleave(t *testing.T) {
	parse := func(list ...string) (ips []netip.Addr) {
		for _, s := range list {
			ips = append(ips, netip.MustParseAddr(s))
		}
		return ips
	}
	got := interleave(parse("::1", "::2", "::3", "10.0.0.1", "::ffff:10.0.0.2"))
	if want := parse("::1", "10.0.0.1", "::2", "::ffff:10.0.0.2", "::3"); !slices.Equal(got, want) {
		t.Errorf("interleaved: %v, want %v", got, want)
	}
}
