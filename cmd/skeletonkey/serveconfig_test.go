package main

import (
	"log/slog"
	"testing"

	"github.com/adrg/xdg"

	"skeletonkey/chirpd"
)

// TestHomeIsExported serves the directory that has the server's own state somewhere in it.
func TestHomeIsExported(t *testing.T) {
	home := t.TempDir()
	t.Cleanup(xdg.Reload) // last, with the environment as it was
	t.Setenv("XDG_STATE_HOME", home+"/.local/state")
	xdg.Reload()
	a := &app{log: slog.New(slog.DiscardHandler)}
	config, err := a.serverConfig(serveOptions{root: home, auth: "unix,ticket"})
	if err != nil {
		t.Fatal(err)
	}
	server, err := chirpd.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
