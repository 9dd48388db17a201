package chirpd_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/wire"
)

// TestBatches sends requests in one write, so that they are read together, and has some
// of them take away what the others look at: each sees what those before it have done.
func TestBatches(t *testing.T) {
	s := serve(t)
	p := s.as("owner")
	for _, dir := range []string{"/d", "/e"} {
		p.want("0", "mkdir %s 493", dir)
	}
	s.write("d/f", "x")
	s.write("e/f", "xx")
	p.want("0", "symlink ../e/f /d/l")
	p.want("0", "symlink /e /k")
	p.want("0", "mkdir /d/sub 493")
	p.want("0", "setacl /d/sub unix:owner a")
	k := ticket(t, p, 3600)
	p.want("0", "ticket_modify ticket:%s /d rl", k.Digest())
	for _, c := range []struct {
		p     *peer
		batch string // a request and its answer on each line; + for one with a stat line
	}{
		{p, "stat /d/f=0+; setacl /d unix:owner a=0; stat /d/f=-2; lstat /d/f=-2; setacl /d unix:owner rwlda=0; stat /d/f=0+"},
		{p, "stat /d/f=0+; rename /d /dd=0; stat /d/f=-3; stat /dd/f=0+; rename /dd /d=0; stat /d/f=0+"},
		{p, "stat /d/f=0+; stat /d/none=-3; stat /d/sub=-2; stat /d/l=0+; stat /d/f/x=-14; stat /d/.__acl=-2; stat /d/=0+; stat /d/f=0+"},
		{p, "stat /k/f=0+; lstat /k/f=0+; stat /k/f=0+; stat /d/f=0+; unlink /d/f=0; stat /d/f=-3; stat /=0+; stat /k=0+; lstat /k=0+"},
		{s.with(k), "stat /d/l=-2; stat /e/f=-2; stat /d/none=-3; lstat /d/l=0+; stat /e/f=-2; lstat /d/l=0+; stat /d/l=-2"},
	} {
		var all strings.Builder
		var want []string
		for _, part := range strings.Split(c.batch, "; ") {
			request, answer, _ := strings.Cut(part, "=")
			all.WriteString(request + "\n")
			want = append(want, answer)
		}
		c.p.send(all.String())
		for i, w := range want {
			if got := c.p.line(); got != strings.TrimSuffix(w, "+") {
				t.Fatalf("answer %d of %q: %s, want %s", i, c.batch, got, w)
			}
			if strings.HasSuffix(w, "+") {
				c.p.line()
			}
		}
	}
}

// TestBatchesLetGo leaves no directory open behind.
func TestBatchesLetGo(t *testing.T) {
	s := serve(t)
	s.write("d/f", "x")
	p := s.as("owner")
	count := func() int {
		list, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	batch := strings.Repeat("stat /d/f\n", 50)
	var before int
	for i := range 20 {
		p.send(batch)
		for range 100 {
			p.line()
		}
		p.want("9", "whoami 9") // the batch has ended
		p.bytes(9)
		if i == 0 {
			before = count()
		}
	}
	if after := count(); after > before {
		t.Errorf("%d descriptors are open, %d were", after, before)
	}
}

// BenchmarkStats300 asks 300 stats at once, of ours and of the real server.
func BenchmarkStats300(b *testing.B) {
	run := func(b *testing.B, addr string) {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		defer conn.Close()
		stream := &auth.Stream{Reader: wire.NewReader(conn, 64<<10), W: conn}
		if _, err := auth.Authenticate(context.Background(), stream, addr, []auth.Method{auth.Unix("")}); err != nil {
			b.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
		fmt.Fprintf(conn, "mkdir /d 493\nputfile /d/small 420 0\n")
		for range 3 {
			if line, err := stream.ReadLine(); err != nil || string(line) != "0" {
				b.Fatalf("%q, %v", line, err)
			}
		}
		batch := bytes.Repeat([]byte("stat /d/small\n"), 300)
		for b.Loop() {
			if _, err := conn.Write(batch); err != nil {
				b.Fatal(err)
			}
			for range 600 {
				if _, err := stream.ReadLine(); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.Run("ours", func(b *testing.B) { run(b, chirptest.Server(b).Addr) })
	b.Run("real", func(b *testing.B) { run(b, chirptest.RealServer(b).Addr) })
}
