package chirpd_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
)

// alloc checks what lsalloc tells of a path.
func (p *peer) alloc(path, dir string, size, used int64) {
	p.t.Helper()
	p.want("0", "lsalloc %s", path)
	if got, want := p.line(), fmt.Sprintf("%s %d %d", dir, size, used); got != want {
		p.t.Fatalf("lsalloc %s: %s, want %s", path, got, want)
	}
}

// puts puts a file of n bytes and gives the last number of the reply.
func (p *peer) puts(path string, n int) string {
	p.t.Helper()
	p.want("0", "putfile %s 420 %d", path, n)
	p.send(strings.Repeat("x", n))
	return p.line()
}

// quota makes a configuration with a root quota.
func quota(n int64) func(*chirpd.Config) {
	return func(c *chirpd.Config) { c.RootQuota = n }
}

// TestAllocationsAgree asks the real server and ours the same.
func TestAllocationsAgree(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *chirptest.Peer{
		"real": func(t *testing.T) *chirptest.Peer { return chirptest.RealServer(t, "-Q", "10000000") },
		"ours": func(t *testing.T) *chirptest.Peer { return chirptest.Server(t, quota(10000000)) },
	} {
		t.Run(name, func(t *testing.T) {
			chirptest.Play(t, start(t).Addr, "testdata/alloc.txt", map[string]string{"user": chirptest.User(t)})
		})
	}
}

// TestAllocationsCount follows every way in which files grow, shrink and go.
func TestAllocationsCount(t *testing.T) {
	s := serve(t, quota(10000))
	p := s.as("owner")
	p.want("0", "mkalloc /q 1000 493")
	p.alloc("/", "/", 10000, 1000)
	count := func(used int64) { p.t.Helper(); p.alloc("/q/x", "/q", 1000, used) }
	p.want("-6", "mkalloc /q/big 1001 493")
	p.want("-4", "mkalloc /q 10 493")
	if got := p.puts("/q/f", 400); got != "400" {
		t.Fatal(got)
	}
	count(400)
	if got := p.puts("/q/f", 900); got != "900" { // takes the place of what it replaces
		t.Fatal(got)
	}
	count(900)
	if got := p.puts("/q/g", 101); got != "-6" {
		t.Fatal(got)
	}
	count(900)
	p.want("0", "truncate /q/f 100")
	count(100)
	p.want("-6", "truncate /q/f 1001")
	p.want("0", "open /q/f rwt 420")
	p.line()
	count(0)
	p.want("10", "pwrite 0 10 500\n0123456789")
	count(510)
	p.want("-6", "pwrite 0 10 991\n0123456789")
	count(510)
	p.want("0", "ftruncate 0 1000")
	count(1000)
	p.want("0", "link /q/f /q/l")
	p.want("0", "unlink /q/f")
	count(1000)
	p.want("0", "unlink /q/l") // still open, and on disk
	count(1000)
	p.want("-6", "ftruncate 0 1001")
	p.want("0", "ftruncate 0 900")
	count(900)
	p.want("0", "close 0")
	count(0)
	p.want("0", "open /q/a wca 420")
	p.line()
	p.want("4", "write 0 4\nabcd")
	p.want("4", "pwrite 0 4 0\nabcd")
	count(8)
	p.want("0", "close 0")
	if got := p.puts("/q/b", 50); got != "50" {
		t.Fatal(got)
	}
	p.want("0", "rename /q/b /q/a")
	count(50)
	p.want("-16", "rename /q/a /a")
	p.want("-16", "link /q/a /a")
	p.want("-10", "rename /q /r")
	for _, dir := range []string{"/q/d", "/q/d/e"} {
		p.want("0", "mkdir %s 493", dir)
		p.puts(dir+"/f", 100)
	}
	count(250)
	p.want("0", "mkalloc /q/d/n 500 493")
	p.puts("/q/d/n/f", 300)
	count(750)
	p.want("0", "rmall /q/d")
	count(50)
	p.want("-10", "rmall /")
	count(50)
	p.want("0", "rmall /q")
	p.alloc("/", "/", 10000, 0)
	p.want("-3", "stat /q")
}

// TestAllocationsHold has many writers at once, and then counts what they left.
func TestAllocationsHold(t *testing.T) {
	const size = 100000
	s := serve(t)
	s.as("owner").want("0", "mkalloc /q %d 493", size)
	var all sync.WaitGroup
	for n := range 8 {
		p := s.as("owner")
		all.Go(func() {
			for i := range 60 {
				switch file := fmt.Sprintf("/q/f%d", (n+i)%5); i % 4 {
				case 0:
					p.puts(file, 7000+i)
				case 1:
					fd := p.ask("open %s wc 420", file)
					if fd[0] != '-' {
						p.line()
						p.ask("pwrite %s 9000 %d\n%s", fd, i*1000, strings.Repeat("y", 9000))
						p.want("0", "close %s", fd)
					}
				case 2:
					p.ask("truncate %s %d", file, i*700)
				case 3:
					p.ask("unlink %s", file)
				}
			}
		})
	}
	all.Wait()
	var there int64
	err := filepath.WalkDir(s.path("q"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			there += info.Size()
		}
		return err
	})
	if err != nil || there > size {
		t.Fatalf("%d bytes are in an allocation of %d (%v)", there, size, err)
	}
	s.as("owner").alloc("/q", "/q", size, there)
}

// TestAllocationsSurvive starts another server on the state and the tree of the first,
// which was not stopped, and with what others changed and removed meanwhile.
func TestAllocationsSurvive(t *testing.T) {
	first := serve(t)
	p := first.as("owner")
	p.want("0", "mkalloc /q 1000 493")
	p.want("0", "mkalloc /q/in 300 493")
	p.want("0", "mkalloc /gone 300 493")
	p.puts("/q/f", 100)
	p.puts("/q/in/f", 10)
	first.write("q/in/g", "from outside")
	if err := os.RemoveAll(first.path("gone")); err != nil {
		t.Fatal(err)
	}
	second := serve(t, func(c *chirpd.Config) { c.Root, c.StateDir = first.root, first.state })
	p = second.as("owner")
	p.alloc("/q/f", "/q", 1000, 400)
	p.alloc("/q/in", "/q/in", 300, 22)
	p.want("-8", "lsalloc /gone/x/..")
	p.want("-8", "lsalloc /")
	if err := os.WriteFile(filepath.Join(first.state, "allocations.json"), []byte(`[{"Dir":`), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := chirpd.Config{Root: first.root, StateDir: first.state, Verifiers: []auth.Verifier{trusting{}}}
	if s, err := chirpd.New(conf); err == nil {
		s.Close()
		t.Error("a server starts without the sizes that it cannot read")
	}
}

// TestFreeSpace leaves some of the disk free.
func TestFreeSpace(t *testing.T) {
	s := serve(t, func(c *chirpd.Config) { c.FreeSpace = 1 << 60 })
	p := s.as("owner")
	p.want("0", "mkdir /d 493")
	if got := p.puts("/f", 10); got != "-6" {
		t.Errorf("putfile: %s", got)
	}
	p.want("0", "open /g wc 420")
	p.line()
	p.want("-6", "pwrite 0 1 0\nx")
}

// TestAllocationsLeftByTheRealServer go on, with what is in use counted anew.
func TestAllocationsLeftByTheRealServer(t *testing.T) {
	real := chirptest.RealServer(t, "-Q", "10000000")
	d := newDebian(t, real.Addr)
	d.file("f", []byte("content"))
	chirptest.Play(t, real.Addr, "testdata/alloc.txt", map[string]string{"user": chirptest.User(t)})
	d.chirp("put", "f", "/q/r/f")
	for file, want := range map[string]string{"q/.__alloc": "1000000\n", "q/r/.__alloc": "100000\n"} { // it writes them late
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			text, _ := os.ReadFile(filepath.Join(real.Root, file))
			if strings.HasPrefix(string(text), want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the real server wrote %q to %s", text, file)
			}
		}
	}
	real.Stop()
	s := serve(t, quota(5000000), func(c *chirpd.Config) {
		c.Root, c.Verifiers = real.Root, []auth.Verifier{trusting{}}
	})
	p := s.as(chirptest.User(t))
	p.alloc("/q/r/f", "/q/r", 100000, 7)
	p.alloc("/q", "/q", 1000000, 100000)
	p.alloc("/", "/", 5000000, 1000000)
	p.want("0", "rmall /q/r")
	again := serve(t, quota(5000000), func(c *chirpd.Config) { c.Root, c.StateDir = real.Root, s.state })
	again.as(chirptest.User(t)).alloc("/q", "/q", 1000000, 0)
}
