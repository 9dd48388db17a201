package private

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

// TestRelog: a record that came from the inner reads as if the outer had written it.
func TestRelog(t *testing.T) {
	var sent, got, want bytes.Buffer
	text := func(w *bytes.Buffer) *slog.Logger {
		return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	record := func(log *slog.Logger) {
		// In the order of the names, as relog has them.
		log.Debug("all kinds",
			"a", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, "b", netip.MustParseAddr("::1"),
			"c", struct{ Method, Name string }{"unix", "a b"}, "d", []string{"x", "y"}, "e", errors.New("no"),
			"f", 1500*time.Millisecond, "g", int64(1)<<60, "h", true, "i", `a="b"`, "j", slog.LevelWarn)
	}
	record(slog.New(linkHandler(&sent, slog.LevelDebug)))
	relog(t.Context(), text(&got), bytes.TrimSpace(sent.Bytes()))
	record(text(&want))
	after := func(b *bytes.Buffer) string { // without the time
		_, rest, _ := bytes.Cut(b.Bytes(), []byte(" "))
		return string(rest)
	}
	if after(&got) != after(&want) || after(&got) == "" {
		t.Errorf("got  %swant %s", after(&got), after(&want))
	}
}
