package chirpd_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"skeletonkey/chirpd"
)

// acl reads the lines of a directory's effective ACL.
func (p *peer) acl(dir string) string {
	p.t.Helper()
	p.want("0", "getacl %s", dir)
	var lines []string
	for line := p.line(); line != ""; line = p.line() {
		lines = append(lines, line)
	}
	return strings.Join(lines, ", ")
}

func inherit(c *chirpd.Config) { c.InheritDefaultACL = true }

// TestInheritance makes directories behind the server's back: the nearest ancestor's ACL
// holds there; setacl writes a local copy and leaves the siblings alone.
func TestInheritance(t *testing.T) {
	s := serve(t, inherit)
	s.write("a/b/c/f", "abcdef")
	s.write("a/b/sibling/f", "abcdef")
	s.write("x/f", "abcdef")
	p, other := s.as("owner"), s.as("other")
	other.want("-2", "stat /a/b/c/f")
	p.want("0", "setacl /a unix:other rl")
	for _, dir := range []string{"/a", "/a/b", "/a/b/c"} {
		if got := p.acl(dir); got != "unix:owner rwldpa, unix:other rl" {
			t.Errorf("%s has the ACL %s", dir, got)
		}
	}
	other.want("6", "getfile /a/b/c/f")
	other.bytes(6)
	other.want("-2", "stat /x/f")
	if got := p.acl("/x"); got != "unix:owner rwldpa" {
		t.Errorf("/x has the ACL %s", got)
	}

	p.want("0", "setacl /a/b/c unix:third r")
	if got := s.read("a/b/c/.__acl"); got != "unix:owner rwldpa\nunix:other rl\nunix:third r\n" {
		t.Errorf("the local copy is %q", got)
	}
	for _, dir := range []string{"a/b", "a/b/sibling", "x", "."} {
		if _, err := os.Stat(s.path(dir + "/.__acl")); err == nil {
			t.Errorf("an ACL was written in %s", dir)
		}
	}
	s.as("third").want("-2", "getfile /a/b/sibling/f")

	// mkdir copies what comes from a file of the tree, and nothing else.
	p.want("0", "mkdir /a/b/new 493")
	p.want("0", "mkdir /new 493")
	if got := s.read("a/b/new/.__acl"); got != "unix:owner rwldpa\nunix:other rl\n" {
		t.Errorf("the new directory has the ACL %q", got)
	}
	if _, err := os.Stat(s.path("new/.__acl")); err == nil {
		t.Error("the default ACL was written into the tree")
	}
}

// TestNoInheritance gives the default ACL to directories without one.
func TestNoInheritance(t *testing.T) {
	s := serve(t)
	s.write("a/b/f", "abcdef")
	p := s.as("owner")
	p.want("0", "setacl /a unix:other rl")
	s.as("other").want("-2", "stat /a/b/f")
	if got := p.acl("/a/b"); got != "unix:owner rwldpa" {
		t.Errorf("/a/b has the ACL %s", got)
	}
}

// TestACLChangedOutside changes ACL files behind the server's back, in place and by
// renames, as fast as it can: each change holds from the next request on.
func TestACLChangedOutside(t *testing.T) {
	s := serve(t)
	s.write("d/f", "abcdef")
	p := s.as("other")
	p.want("-2", "stat /d/f")
	for i := range 200 {
		// The same size each time, so that only the times or the inode tell.
		text, want := "unix:other l\n", "0"
		if i%2 == 1 {
			text, want = "unix:other r\n", "-2"
		}
		name := "d/.__acl"
		if i%4 >= 2 {
			name = "d/.__acl.new"
		}
		s.write(name, text)
		if err := os.Rename(s.path(name), s.path("d/.__acl")); err != nil {
			t.Fatal(err)
		}
		if got := p.whole("stat /d/f"); got != want {
			t.Fatalf("change %d: got %s, want %s", i, got, want)
		}
	}
	if err := os.Remove(s.path("d/.__acl")); err != nil {
		t.Fatal(err)
	}
	p.want("-2", "stat /d/f")
}

// TestBrokenACL grants nothing, to nobody, and says so in the log.
func TestBrokenACL(t *testing.T) {
	for name, text := range map[string]string{
		"torn":       "unix:owner rwlda\nunix:ot",
		"letters":    "unix:owner rwlda\nunix:other rwq\n",
		"binary":     "\x00\x01\x02",
		"half a v":   "unix:owner rwlda\nunix:other v(rw\n",
		"not a file": "",
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, inherit)
			s.write("d/f", "abcdef")
			if text == "" {
				if err := os.Mkdir(s.path("d/.__acl"), 0o755); err != nil {
					t.Fatal(err)
				}
			} else {
				s.write("d/.__acl", text)
			}
			for _, who := range []string{"owner", "other"} {
				p := s.as(who)
				for _, request := range []string{"stat /d/f", "getfile /d/f", "setacl /d unix:other rwlda", "mkdir /d/e 493"} {
					if got := p.ask("%s", request); !strings.HasPrefix(got, "-") {
						t.Errorf("%s: %s was answered %s", who, request, got)
					}
				}
			}
			if text != "" && !strings.Contains(s.log.String(), "grants nothing") {
				t.Error("the log does not say so")
			}
		})
	}
}

// TestConcurrentSetacl loses no change of several clients to one directory.
func TestConcurrentSetacl(t *testing.T) {
	s := serve(t)
	s.write("d/f", "x")
	const clients, each = 4, 5
	var wg sync.WaitGroup
	for c := range clients {
		p := s.as("owner")
		wg.Go(func() {
			for i := range each {
				if got := p.ask("setacl /d unix:u%d.%d rl", c, i); got != "0" {
					t.Errorf("setacl was answered %s", got)
				}
			}
		})
	}
	wg.Wait()
	got := s.as("owner").acl("/d")
	for c := range clients {
		for i := range each {
			if want := fmt.Sprintf("unix:u%d.%d rl", c, i); !strings.Contains(got, want) {
				t.Errorf("%s is lost: %s", want, got)
			}
		}
	}
}

// TestLinksAndACLs is case 4: a link's own directory counts for a hard link to it, and
// the target's for opening that.
func TestLinksAndACLs(t *testing.T) {
	s := serve(t)
	s.write("private/f", "secret")
	s.write("open/other", "x")
	if err := os.Symlink("../private/f", s.path("open/l")); err != nil {
		t.Fatal(err)
	}
	o := s.as("owner")
	o.want("0", "setacl /open unix:other rwld")
	p := s.as("other")
	p.want("0", "link /open/l /open/m")
	for _, request := range []string{"open /open/m r 0", "getfile /open/m", "stat /open/m", "md5 /open/m", "chmod /open/l 511",
		"truncate /open/m 0", "open /open/m wt 0", "putfile /open/m 420 0", "link /private/f /open/n", "rename /private/f /open/n",
		"getxattr /open/m user.a", "utime /open/l 1 1", "access /open/l 4", "getdir /open/../private"} {
		p.want("-2", "%s", request)
	}
	p.want("0", "unlink /open/m")
	p.want("12", "readlink /open/l 100")
	if got := p.bytes(12); got != "../private/f" {
		t.Errorf("the link's text is %q", got)
	}
}

// TestRmallRights is case 5, in both directions.
func TestRmallRights(t *testing.T) {
	s := serve(t)
	s.write("a/child/deep/f", "x")
	s.write("a/child/.__acl", "")
	s.write("a/child/deep/.__acl", "unix:owner rwlda\n")
	s.write("b/child/f", "x")
	s.write("b/.__acl", "unix:owner rwlda\n")
	s.write("b/child/.__acl", "unix:other rwld\n")
	o, p := s.as("owner"), s.as("other")
	o.want("0", "setacl /a unix:other rwld")
	p.want("-2", "getdir /a/child")
	p.want("0", "rmall /a/child")
	p.want("-2", "rmall /b/child")
	if got := s.read("b/child/f"); got != "x" {
		t.Errorf("the file has %q", got)
	}
	if _, err := os.Stat(s.path("a/child")); !os.IsNotExist(err) {
		t.Errorf("the directory: %v", err)
	}
}

// TestReserve makes directories by the right v.
func TestReserve(t *testing.T) {
	s := serve(t)
	o, p := s.as("owner"), s.as("other")
	for _, c := range []struct{ right, want string }{
		{"v(rl)", "unix:other rl"}, {"v", "unix:other rwldpa"}, {"lv(rwld)", "unix:other rwldp"},
	} {
		o.want("0", "setacl / unix:other %s", c.right)
		p.want("0", "mkdir /d 493")
		if got := o.acl("/d"); got != c.want {
			t.Errorf("with %s the maker has %s, want %s", c.right, got, c.want)
		}
		o.want("0", "rmdir /d")
	}
	o.want("0", "setacl / unix:other wv(rl)")
	p.want("0", "mkdir /d 493")
	if got := o.acl("/d"); !strings.Contains(got, "unix:owner rwlda") && !strings.Contains(got, "unix:owner rwldpa") {
		t.Errorf("with w the directory has the ACL %s, not its parent's", got)
	}
}
