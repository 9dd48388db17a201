package client_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// TestReopen restarts the server under open files.
func TestReopen(t *testing.T) {
	for _, r := range []struct {
		name string
		test func(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer)
	}{
		{"Same", testReopenSame},
		{"Flags", testReopenFlags},
		{"Renamed", testReopenRenamed},
		{"Replaced", testReopenReplaced},
		{"Unlinked", testReopenUnlinked},
		{"Shorter", testReopenShorter},
		{"Closed", testReopenClosed},
	} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
				c := dial(t, p.Addr, client.Options{})
				r.test(t, within(t), c, p)
			})
		})
	}
}

func restart(p *chirptest.Peer) {
	p.Stop()
	p.Start()
}

func put(t *testing.T, c *client.Client, path, content string) {
	t.Helper()
	ok(t, c.Putfile(within(t), path, 0o644, int64(len(content)), strings.NewReader(content)))
}

func read(t *testing.T, f *client.File) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := f.Pread(within(t), b, 0)
	ok(t, err)
	return string(b[:n])
}

func testReopenSame(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	var files []*client.File
	for _, name := range []string{"/a", "/b", "/c", "/d", "/e"} {
		put(t, c, name, "content of "+name)
		f, err := c.Open(ctx, name, readWrite, 0)
		ok(t, err)
		files = append(files, f)
	}
	for range 3 {
		restart(p)
		for _, f := range files {
			if got := read(t, f); got != "content of "+f.Path() {
				t.Errorf("%s holds %q", f.Path(), got)
			}
		}
	}
	_, err := files[0].Pwrite(ctx, []byte("C"), 0)
	ok(t, err)
	restart(p)
	ok(t, files[0].Fsync(ctx))
	if got := read(t, files[0]); got != "Content of /a" {
		t.Errorf("after a write: %q", got)
	}
	for _, f := range files {
		ok(t, f.Close(ctx))
	}
}

func testReopenFlags(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	f, err := c.Open(ctx, "/f", create|wire.OpenTruncate|wire.OpenExclude, 0o644)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("hello"), 0)
	ok(t, err)
	restart(p)
	if got := read(t, f); got != "hello" {
		t.Errorf("after reopening the file holds %q", got)
	}
	a, err := c.Open(ctx, "/f", wire.OpenWrite|wire.OpenAppend, 0)
	ok(t, err)
	restart(p)
	_, err = a.Fstat(ctx) // may still go to the old server, and then again to the new one
	ok(t, err)
	_, err = a.Pwrite(ctx, []byte(" world"), 0)
	ok(t, err)
	if got := read(t, f); got != "hello world" {
		t.Errorf("after appending the file holds %q", got)
	}
}

func testReopenRenamed(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	ok(t, c.Mkdir(ctx, "/d", 0o755))
	ok(t, c.Mkdir(ctx, "/d/e", 0o755))
	put(t, c, "/d/e/f", "mine")
	put(t, c, "/d/e/fx", "other")
	f, err := c.Open(ctx, "/d/e/f", wire.OpenRead, 0)
	ok(t, err)
	x, err := c.Open(ctx, "d//e/fx", wire.OpenRead, 0)
	ok(t, err)
	ok(t, c.Rename(ctx, "/d/e/f", "/d/e/g"))
	fails(t, c.Rename(ctx, "/d/e/none", "/d/e/fx"), syscall.ENOENT)
	ok(t, c.Rename(ctx, "/d", "/D"))
	restart(p)
	if f.Path() != "/D/e/g" || read(t, f) != "mine" {
		t.Errorf("%s is not found", f.Path())
	}
	if x.Path() != "/D/e/fx" || read(t, x) != "other" {
		t.Errorf("%s is not found", x.Path())
	}
}

func testReopenReplaced(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	put(t, c, "/f", "old")
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	p.Stop()
	// A file of its own inode takes the name.
	ok(t, os.WriteFile(filepath.Join(p.Root, "new"), []byte("new"), 0o644))
	p.Own("new")
	ok(t, os.Rename(filepath.Join(p.Root, "new"), filepath.Join(p.Root, "f")))
	p.Start()
	_, err = f.Pread(ctx, make([]byte, 3), 0)
	fails(t, err, syscall.ESTALE)
	_, err = f.Fstat(ctx)
	fails(t, err, syscall.ESTALE)
	ok(t, f.Close(ctx)) // nothing was lost
	g, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	if got := read(t, g); got != "new" {
		t.Errorf("the new file holds %q", got)
	}
}

func testReopenUnlinked(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	put(t, c, "/f", "old")
	put(t, c, "/g", "good")
	f, err := c.Open(ctx, "/f", readWrite, 0)
	ok(t, err)
	c.StartStat("/", new(wire.Stat)) // whatever becomes of it
	g, err := c.Open(ctx, "/g", readWrite, 0)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("x"), 0)
	ok(t, err)
	ok(t, c.Unlink(ctx, "/f"))
	restart(p)
	_, err = f.Pread(ctx, make([]byte, 3), 0)
	fails(t, err, syscall.ESTALE)
	fails(t, f.Close(ctx), syscall.ESTALE) // what was written is gone
	if got := read(t, g); got != "good" {
		t.Errorf("the other file holds %q", got)
	}
}

// testReopenShorter: bytes that were acknowledged and are gone are never forgotten.
func testReopenShorter(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	f, err := c.Open(ctx, "/f", create, 0o644)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("0123456789"), 0)
	ok(t, err)
	ok(t, f.Ftruncate(ctx, 8)) // which is no loss
	restart(p)
	ok(t, f.Fsync(ctx))
	ok(t, c.Truncate(ctx, "/f", 6))
	restart(p)
	ok(t, f.Fsync(ctx))

	_, err = f.Pwrite(ctx, []byte("0123456789"), 0)
	ok(t, err)
	p.Stop()
	ok(t, os.Truncate(filepath.Join(p.Root, "f"), 5))
	p.Start()
	fails(t, f.Fsync(ctx), syscall.ESTALE)
	fails(t, f.Fsync(ctx), syscall.ESTALE)
	fails(t, f.Close(ctx), syscall.ESTALE)
}

// testReopenClosed: a close needs the server only if something may be lost.
func testReopenClosed(t *testing.T, ctx context.Context, c *client.Client, p *chirptest.Peer) {
	put(t, c, "/f", "old")
	clean, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	dirty, err := c.Open(ctx, "/f", readWrite, 0)
	ok(t, err)
	_, err = dirty.Pwrite(ctx, []byte("new"), 0)
	ok(t, err)
	p.Stop()
	ok(t, clean.Close(ctx))
	closing := dirty.StartClose()
	select {
	case <-closing.Done():
		_, err := closing.Wait(ctx)
		t.Errorf("close of a file that was written to ended without the server: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Start()
	_, err = closing.Wait(ctx)
	ok(t, err)
}

// TestServerGone is case 33: the server dies after the last write and does not come
// back; fsync and close fail.
func TestServerGone(t *testing.T) {
	t.Parallel()
	p := chirptest.Server(t)
	c := dial(t, p.Addr, client.Options{Timeout: 200 * time.Millisecond})
	ctx := within(t)
	f, err := c.Open(ctx, "/f", create, 0o644)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("new"), 0)
	ok(t, err)
	p.Stop()
	fails(t, f.Fsync(ctx), syscall.ETIMEDOUT)
	fails(t, f.Fsync(ctx), syscall.ETIMEDOUT)
	fails(t, f.Close(ctx), syscall.ETIMEDOUT)
}

// TestRenameUnderReconnect: a file that moves while its connection comes back is
// found.
func TestRenameUnderReconnect(t *testing.T) {
	t.Parallel()
	renamed := make(gate)
	rest := &failing{}
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		for {
			switch r := c.Request().(type) {
			case nil:
				return
			case *wire.Rename: // done, and the answer is slow
				renamed.open()
				renamed.pass()
				c.Send("0\n")
			case *wire.Open:
				if r.Path == "/f" && c.Number > 1 {
					c.Send("-3\n")
				} else {
					c.Send("7\n" + statLine)
				}
			case *wire.Fstat:
				if c.Number == 1 {
					return
				}
				c.Send("0\n" + statLine)
			default:
				rest.answer(c, r)
			}
		}
	})
	c := dial(t, addr, byAddress())
	ctx := within(t)
	f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
	ok(t, err)
	moved := make(chan error)
	go func() { moved <- c.Rename(ctx, "/f", "/g") }()
	renamed.pass()
	looked := make(chan error)
	go func() {
		_, err := f.Fstat(ctx)
		looked <- err
	}()
	time.Sleep(100 * time.Millisecond) // some attempts find nothing at the old place
	renamed.open()
	ok(t, <-moved)
	ok(t, <-looked)
	if f.Path() != "/g" {
		t.Errorf("the file is at %s", f.Path())
	}
}

// TestClose: calls under way end with the client, and later ones fail.
func TestClose(t *testing.T) {
	reached := make(gate)
	addr := chirptest.Scripted(t, func(c *chirptest.ScriptedConn) {
		c.Request()
		reached.open()
		c.Request()
	})
	c := client.New(addr, byAddress())
	k := c.StartStat("/", new(wire.Stat))
	go func() { _, _ = c.Getfile(within(t), "/f", io.Discard) }()
	reached.pass()
	reached.pass()
	ok(t, c.Close())
	if _, err := k.Wait(within(t)); !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "closed") {
		t.Errorf("the call under way failed with %v", err)
	}
	if _, err := c.Stat(within(t), "/"); err == nil {
		t.Error("a call after Close succeeded")
	}
	if _, err := c.Getfile(within(t), "/", io.Discard); err == nil {
		t.Error("a transfer after Close succeeded")
	}
	ok(t, c.Close())
}
