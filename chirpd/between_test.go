package chirpd_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/chirptest"
)

// TestThirdput sends a tree to a real server and to one of ours, with its links and,
// where the other lets it, its ACLs.
func TestThirdput(t *testing.T) {
	targets := map[string]func(*testing.T) *chirptest.Peer{
		"real": func(t *testing.T) *chirptest.Peer { return chirptest.RealServer(t) },
		"ours": func(t *testing.T) *chirptest.Peer {
			return chirptest.Server(t, func(c *chirpd.Config) {
				c.Verifiers = append(c.Verifiers, auth.AddressVerifier())
				c.DefaultACL = "unix:" + chirptest.User(t) + " rwlda\naddress:127.0.0.1 rwla\n"
				c.InheritDefaultACL = true
			})
		},
	}
	for name, start := range targets {
		t.Run(name, func(t *testing.T) {
			to := start(t)
			if to.Real {
				text := "unix:" + chirptest.User(t) + " rwlda\naddress:127.0.0.1 rwla\n"
				if err := os.WriteFile(filepath.Join(to.Root, ".__acl"), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			s := serve(t, func(c *chirpd.Config) { c.PeerMethods = []auth.Method{auth.Address()} })
			p := s.as("owner")
			big := strings.Repeat("0123456789abcdef", 1<<16)
			for _, dir := range []string{"/tree", "/tree/sub"} {
				p.want("0", "mkdir %s 493", dir)
			}
			s.write("tree/f", big)
			s.write("tree/sub/g", "abc")
			p.want("0", "symlink ../f /tree/sub/l")
			p.want("0", "setacl /tree/sub unix:friend rl")
			p.want("0", "setacl /tree unix:owner rwlda")
			p.want("17", "whoareyou %s 100", to.Addr)
			if got := p.bytes(17); got != "address:127.0.0.1" {
				t.Fatalf("whoareyou: %q", got)
			}
			p.want("3", "thirdput /tree/sub/g %s /alone", to.Addr)
			p.want(fmt.Sprint(len(big)+3), "thirdput /tree %s /copy", to.Addr)
			if target, err := os.Readlink(filepath.Join(to.Root, "copy/sub/l")); target != "../f" {
				t.Errorf("the link leads to %q (%v)", target, err)
			}
			p.want("-2", "thirdput /tree %s /copy", to.Addr) // its ACL does not name this server
			for file, want := range map[string]string{"alone": "abc", "copy/f": big, "copy/sub/g": "abc"} {
				if got, err := os.ReadFile(filepath.Join(to.Root, file)); string(got) != want {
					t.Errorf("%s: %d bytes of %d (%v)", file, len(got), len(want), err)
				}
			}
			acl, _ := os.ReadFile(filepath.Join(to.Root, "copy/sub/.__acl"))
			if !strings.Contains(string(acl), "unix:friend rl") || strings.Contains(string(acl), "address:") {
				t.Errorf("the ACL there:\n%s", acl)
			}
			p.want("-3", "thirdput /none %s /copy", to.Addr)
			s.as("other").want("-2", "thirdput /tree %s /stolen", to.Addr)
		})
	}
}

// TestThirdputEnds ends one when its client leaves, or its server stops, though the
// other server takes nothing.
func TestThirdputEnds(t *testing.T) {
	for name, end := range map[string]func(*site, *peer){
		"client": func(_ *site, p *peer) { p.Close() },
		"server": func(s *site, _ *peer) { _ = s.server.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			var open atomic.Int32
			reached := make(chan struct{}, 8)
			other := serve(t, func(c *chirpd.Config) { c.DefaultACL = "unix:owner rwlda" })
			s := serve(t, func(c *chirpd.Config) {
				c.PeerMethods = []auth.Method{trustingClient{}}
				c.PeerDial = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					open.Add(1)
					return &slowConn{Conn: conn, open: &open, reached: reached}, nil
				}
			})
			s.write("f", strings.Repeat("x", 64<<20))
			p := s.as("owner")
			p.send("thirdput /f " + other.addr + " /copy\n")
			<-reached
			end(s, p)
			for deadline := time.Now().Add(20 * time.Second); open.Load() > 0; time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it goes on")
				}
			}
			if names, _ := os.ReadDir(other.root); len(names) > 0 {
				t.Errorf("half a file is left: %v", names)
			}
		})
	}
}

// trustingClient is the client's side of trusting.
type trustingClient struct{}

func (trustingClient) Name() string { return "unix" }

func (trustingClient) Prove(_ context.Context, s *auth.Stream, _ string) error {
	if _, err := io.WriteString(s.W, "owner\n"); err != nil {
		return err
	}
	_, err := s.ReadLine()
	return err
}

// slowConn takes large writes slowly.
type slowConn struct {
	net.Conn
	open    *atomic.Int32
	reached chan struct{}
	closed  atomic.Bool
}

func (c *slowConn) Write(p []byte) (int, error) {
	if len(p) > 64<<10 {
		select {
		case c.reached <- struct{}{}:
		default:
		}
		time.Sleep(50 * time.Millisecond)
	}
	return c.Conn.Write(p)
}

func (c *slowConn) Close() error {
	if !c.closed.Swap(true) {
		c.open.Add(-1)
	}
	return c.Conn.Close()
}

// TestGroups looks members up where the configuration says, once, and forgets in time.
func TestGroups(t *testing.T) {
	var asked atomic.Int32
	var list atomic.Value
	list.Store("unix:alice\n\n unix:bob \n")
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/base/team/one" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, list.Load().(string))
	}))
	defer web.Close()
	s := serve(t, func(c *chirpd.Config) {
		c.GroupURL, c.GroupCache = web.URL+"/base/", 500*time.Millisecond
	})
	o := s.as("owner")
	o.want("0", "setacl / group:team/one rl")
	o.want("0", "setacl / group:../../admin rwlda")
	s.write("f", "x")
	alice, eve := s.as("alice"), s.as("eve")
	for range 3 {
		alice.want("1", "getfile /f")
		alice.bytes(1)
		s.as("bob").want("-2", "unlink /f")
		eve.want("-2", "getfile /f")
	}
	if n := asked.Load(); n > 4 {
		t.Errorf("asked %d times", n)
	}
	list.Store("unix:eve\n")
	for deadline := time.Now().Add(10 * time.Second); alice.ask("stat /f") == "0"; time.Sleep(20 * time.Millisecond) {
		alice.line()
		if time.Now().After(deadline) {
			t.Fatal("who left the group still has its rights")
		}
	}
	eve.want("1", "getfile /f")
	web.Close()
	eve.bytes(1)
	for deadline := time.Now().Add(10 * time.Second); eve.ask("stat /f") == "0"; time.Sleep(20 * time.Millisecond) {
		eve.line()
		if time.Now().After(deadline) {
			t.Fatal("a list that cannot be had lets in")
		}
	}
}

// TestSuperuser has all rights, and no other subject has.
func TestSuperuser(t *testing.T) {
	s := serve(t, func(c *chirpd.Config) { c.Superuser = "unix:boss" })
	s.as("owner").want("0", "mkdir /d 493")
	s.as("owner").want("0", "resetacl /d rl")
	s.as("boss").want("0", "setacl /d unix:x rl")
	s.as("bos").want("-2", "setacl /d unix:x rl")
	s.as("*").want("-2", "setacl /d unix:x rl")
}

// TestHashes compares with sums of the same bytes worked out elsewhere.
func TestHashes(t *testing.T) {
	s := serve(t)
	s.write("f", "abc")
	p := s.as("owner")
	for algorithm, want := range map[string]string{
		"md5":    "\x90\x01\x50\x98\x3c\xd2\x4f\xb0\xd6\x96\x3f\x7d\x28\xe1\x7f\x72",
		"sha1":   "\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e\x25\x71\x78\x50\xc2\x6c\x9c\xd0\xd8\x9d",
		"sha256": "\xba\x78\x16\xbf\x8f\x01\xcf\xea\x41\x41\x40\xde\x5d\xae\x22\x23\xb0\x03\x61\xa3\x96\x17\x7a\x9c\xb4\x10\xff\x61\xf2\x00\x15\xad",
		"blake3": "\x64\x37\xb3\xac\x38\x46\x51\x33\xff\xb6\x3b\x75\x27\x3a\x8d\xb5\x48\xc5\x58\x46\x5d\x79\xdb\x03\xfd\x35\x9c\x6c\xd5\xbd\x9d\x85",
	} {
		p.want(fmt.Sprint(len(want)), "hash %s /f", algorithm)
		if got := p.bytes(len(want)); !bytes.Equal([]byte(got), []byte(want)) {
			t.Errorf("%s: %x", algorithm, got)
		}
	}
	p.want("-8", "hash crc32 /f")
}
