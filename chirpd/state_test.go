package chirpd_test

import (
	"os"
	"path/filepath"
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
