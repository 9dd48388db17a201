package client_test

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within is a context that ends a test which hangs.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// dial is a client that ends with the test.
func dial(t testing.TB, addr string, o client.Options) *client.Client {
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	o.Log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := client.New(addr, o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// byAddress are options for a scripted server.
func byAddress() client.Options { return client.Options{Methods: []auth.Method{auth.Address()}} }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fails checks an error's meaning, and that it says what failed.
func fails(t testing.TB, err error, want syscall.Errno) {
	t.Helper()
	var e *wire.Error
	if !errors.As(err, &e) || e.Op == "" || wire.ErrnoFor(err) != want {
		t.Fatalf("got error %v (%v), want %v", err, wire.ErrnoFor(err), want)
	}
}

const (
	readWrite = wire.OpenRead | wire.OpenWrite
	create    = readWrite | wire.OpenCreate
)
