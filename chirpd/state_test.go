package chirpd_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
)

// TestStateInTheExport has the server's state where clients could write tickets of their
// own into it, and where they cannot.
func TestStateInTheExport(t *testing.T) {
	root, other := t.TempDir(), t.TempDir()
	link := filepath.Join(other, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	for state, good := range map[string]bool{
		root:                                false,
		filepath.Join(root, "a/state"):      false,
		filepath.Join(link, "state"):        false,
		filepath.Join(root, ".__a/state"):   true,
		filepath.Join(root + "-more/state"): true,
		filepath.Join(other, "..state"):     true,
	} {
		s, err := chirpd.New(chirpd.Config{Root: root, StateDir: state, Tickets: true, Verifiers: []auth.Verifier{trusting{}}})
		if (err == nil) != good {
			t.Errorf("state in %s, export %s: %v", state, root, err)
		}
		if err == nil {
			s.Close()
			os.RemoveAll(state)
		}
	}
	s := serve(t, func(c *chirpd.Config) {
		c.StateDir, c.DefaultACL = filepath.Join(c.Root, ".__own/state"), "unix:owner rwlda\nunix:guest rwl\n"
	})
	guest := s.as("guest")
	guest.want("-2", "putfile /.__own/state/tickets/ticket.00000000000000000000000000000000 420 0")
	guest.want("-2", "stat /.__own/state/tickets")
}

// TestACLStaysReadable adds entries until the ACL would be larger than is read of one.
func TestACLStaysReadable(t *testing.T) {
	s := serve(t)
	p := s.as("owner")
	for i := 0; ; i++ {
		if i > 100 {
			t.Fatal("an ACL of any size is written")
		}
		if got := p.ask("setacl / unix:%s%d r", strings.Repeat("x", 60000), i); got != "0" {
			if got != "-5" || i < 10 {
				t.Fatalf("entry %d: %s", i, got)
			}
			break
		}
	}
	p.want("0", "stat /")
	p.line()
	p.want("0", "resetacl / rwlda")
}
