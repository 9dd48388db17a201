package chirpd_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/chirptest"
)

// stage is a server, ours or a real one, on which a test can be two users: an owner who
// may do everything in the root, and another.
type stage struct {
	real         bool
	owner, other *peer
	otherName    string // in ACLs
}

func ourStage(t *testing.T) stage {
	s := serve(t)
	return stage{owner: s.as("owner"), other: s.as("other"), otherName: "unix:other"}
}

// realStage needs to be root: the other user is made by giving a challenge file away.
func realStage(t *testing.T) stage {
	if os.Getuid() != 0 {
		t.Skip("only root can be two users of a real chirp_server")
	}
	p := chirptest.RealServer(t)
	daemon, err := user.Lookup("daemon")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.Atoi(daemon.Uid)
	if err != nil {
		t.Fatal(err)
	}
	return stage{true, dialUnix(t, p.Addr, 0), dialUnix(t, p.Addr, uid), "unix:daemon"}
}

// dialUnix authenticates as the user uid by unix.
func dialUnix(t *testing.T, addr string, uid int) *peer {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute))
	p := &peer{t, conn, bufio.NewReader(conn)}
	p.want("yes", "unix")
	challenge := p.line()
	if err := os.WriteFile(challenge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(challenge)
	if err := os.Chown(challenge, uid, -1); err != nil {
		t.Fatal(err)
	}
	p.want("yes", "yes")
	if got := p.line(); got != "yes" {
		t.Fatalf("authenticated with %q", got)
	}
	p.line()
	p.line()
	return p
}

// TestRights holds testdata/rights.txt against our server and, where there is one,
// against the real server from which it was recorded.
func TestRights(t *testing.T) {
	t.Run("ours", func(t *testing.T) { playRights(t, ourStage(t)) })
	t.Run("real", func(t *testing.T) { playRights(t, realStage(t)) })
}

func playRights(t *testing.T, s stage) {
	const file = "testdata/rights.txt"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for i, line := range strings.Split(string(text), "\n") {
		request, cells, ok := strings.Cut(line, "|")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		if columns == nil {
			columns = strings.Fields(cells)
			s.prepare(columns)
			continue
		}
		want := strings.Fields(cells)
		if len(want) != len(columns) {
			t.Fatalf("%s:%d: %d cells for %d columns", file, i+1, len(want), len(columns))
		}
		for k, right := range columns {
			expected, ours, differs := strings.Cut(want[k], "/")
			if differs && !s.real {
				expected = ours
			}
			ask := strings.NewReplacer("D", "/D"+right, "-R", "-"+right).Replace(strings.TrimSpace(request))
			if got := s.other.whole(ask); got != expected {
				t.Errorf("%s:%d: with %s: %s: got %s, want %s", file, i+1, right, ask, got, expected)
			}
		}
	}
}

// prepare makes a directory for each right.
func (s stage) prepare(rights []string) {
	o := s.owner
	o.want("0", "setacl / %s l", s.otherName)
	o.want("0", "mkdir /all 493")
	o.want("0", "setacl /all %s rwlda", s.otherName)
	put(o, "/all/f")
	for _, right := range rights {
		d := "/D" + right
		for _, dir := range []string{d, d + "/e", d + "/e2"} {
			o.want("0", "mkdir %s 493", dir)
			acl := strings.Replace(right, "none", "n", 1)
			o.want("0", "setacl %s %s %s", dir, s.otherName, acl)
		}
		for _, name := range []string{"f", "f2", "f4", "f5"} {
			put(o, d+"/"+name)
		}
		put(o, "/all/k-"+right)
		o.want("0", "symlink f %s/l", d)
	}
}

func put(p *peer, path string) {
	p.t.Helper()
	p.want("0", "putfile %s 420 6", path)
	p.send("abcdef")
	if got := p.line(); got != "6" {
		p.t.Fatalf("putfile %s: got %s", path, got)
	}
}

// whole asks, reads the whole reply, and returns its number; what was opened is closed
// again.
func (p *peer) whole(request string) string {
	p.t.Helper()
	p.send(request + "\n")
	first := p.line()
	if strings.HasPrefix(first, "-") {
		return first
	}
	n, err := strconv.Atoi(first)
	if err != nil {
		p.t.Fatalf("%s: got %q", request, first)
	}
	switch command, _, _ := strings.Cut(request, " "); command {
	case "open":
		p.line()
		p.want("0", "close %d", n)
		return "0"
	case "stat", "lstat", "statfs":
		p.line()
	case "getfile", "readlink", "md5", "listxattr":
		p.bytes(n)
	case "putfile":
		return p.line()
	case "getdir", "getlongdir", "getacl":
		for p.line() != "" {
		}
	}
	return fmt.Sprint(n)
}
