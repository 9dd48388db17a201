package chirpd

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"

	"skeletonkey/chirpd/auth"
	"time"
)

func TestDevServe(t *testing.T) {
	if os.Getenv("DEV_SERVE") == "" {
		t.Skip()
	}
	s, err := New(Config{Root: os.Getenv("DEV_SERVE"), StateDir: "/tmp/sksrv/state", Tickets: true, Verifiers: []auth.Verifier{auth.UnixVerifier("/tmp", 5*time.Second)},
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:19195")
	if err != nil {
		t.Fatal(err)
	}
	ctx, c := context.WithTimeout(context.Background(), 60*time.Second)
	defer c()
	t.Log(s.Serve(ctx, l), s.Close())
}
