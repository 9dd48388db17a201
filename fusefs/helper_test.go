package fusefs

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// mount is an export that a test has mounted.
type mount struct {
	*Mounted
	dir    string // where
	client *client.Client
	server *chirptest.Peer
}

// setting changes how a test mounts.
type setting func(*client.Options, *Options, *MountOptions)

// mounted mounts p's export, by way of addr, until the test ends. All that was
// written has to arrive.
func mounted(t testing.TB, p *chirptest.Peer, addr string, settings ...setting) *mount {
	t.Helper()
	m := start(t, p, addr, settings...)
	t.Cleanup(func() {
		if err := m.end(); err != nil {
			t.Errorf("end of the mount: %v", err)
		}
	})
	return m
}

// start mounts; the test has to call end.
func start(t testing.TB, p *chirptest.Peer, addr string, settings ...setting) *mount {
	t.Helper()
	if _, err := os.Stat("/dev/fuse"); err != nil {
		chirptest.Missing(t, "no /dev/fuse here")
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	co := client.Options{Timeout: 20 * time.Second, Log: log}
	fo := Options{Log: log}
	var mo MountOptions
	for _, set := range settings {
		set(&co, &fo, &mo)
	}
	c := client.New(addr, co)
	f, err := New(c, fo)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "fusefs-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) })
	m, err := Mount(t.Context(), f, dir, mo)
	if err != nil {
		c.Close()
		t.Fatal(err)
	}
	return &mount{Mounted: m, dir: dir, client: c, server: p}
}

// end unmounts and closes the client.
func (m *mount) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := m.Close(ctx)
	m.client.Close()
	return err
}

// ttl is for how long mounts with the setting quick believe things.
const ttl = 100 * time.Millisecond

func quick(_ *client.Options, o *Options, _ *MountOptions) { o.TTL = ttl }

// expire waits until a mount with the setting quick believes nothing any more.
func expire() { time.Sleep(ttl + 20*time.Millisecond) }

// near mounts our server's export.
func near(t testing.TB, settings ...setting) *mount {
	t.Helper()
	p := chirptest.Server(t)
	return mounted(t, p, p.Addr, settings...)
}

// path is a place in the mount.
func (m *mount) path(name string) string { return filepath.Join(m.dir, name) }

// remote is the same place on the server's disk.
func (m *mount) remote(name string) string { return filepath.Join(m.server.Root, name) }

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
