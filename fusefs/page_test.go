package fusefs

import (
	"os"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"skeletonkey/chirpd/chirptest"
)

// TestPageAfterLoss checks that a page of memory is taken after a write has failed: the
// kernel would drop it, and it is the next write of the program that has to be told.
func TestPageAfterLoss(t *testing.T) {
	p := chirptest.Server(t)
	r := chirptest.NewRelay(t, p.Addr)
	m := start(t, p, r.Addr, patience(300*time.Millisecond))
	write(t, m.path("f"), string(make([]byte, 100_000)))
	f, err := os.OpenFile(m.path("f"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	h := m.fs.root.childNode("f").writing(nil)[0]
	r.Pause()
	if _, err := f.WriteAt([]byte("lost"), 0); err != nil {
		t.Fatal(err)
	}
	r.Refuse()
	r.Cut()
	waitFor(t, "the write has failed", func() bool { return !h.writer.Pending() })
	r.Resume()
	r.Accept()
	waitFor(t, "the server is back", func() bool {
		_, err := h.file.Load().Fstat(t.Context())
		return err == nil
	})
	ctx := &fuse.Context{Caller: fuse.Caller{Pid: pagesPID}}
	if _, errno := h.Write(ctx, []byte("page"), 4096); errno != 0 {
		t.Errorf("write of a page: %v", errno)
	}
	if _, err := f.WriteAt([]byte("next"), 0); err == nil {
		t.Error("the next write does not tell of the loss")
	}
	_ = f.Close() // which tells again
	if err := m.end(); err != nil {
		t.Errorf("end of the mount: %v", err)
	}
	if got := read(t, m.remote("f")); got[4096:4100] != "page" {
		t.Errorf("the server has %q", got[4096:4100])
	}
}
