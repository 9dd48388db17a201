package chirpd_test

import (
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/chirpd/chirptest"
)

// TestConversations plays what was recorded from the real server (testdata/both) with
// it and with ours, and what is ours alone (testdata/ours).
func TestConversations(t *testing.T) {
	vars := map[string]string{
		"user": chirptest.User(t),
		"long": strings.Repeat("n", 256),
		"big":  strings.Repeat("x", 65537),
	}
	play := func(t *testing.T, dir string, start func(testing.TB) *chirptest.Peer) {
		files, err := filepath.Glob("testdata/" + dir + "/*.txt")
		if err != nil || len(files) == 0 {
			t.Fatalf("no conversations in %s (%v)", dir, err)
		}
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				chirptest.Play(t, start(t).Addr, file, vars)
			})
		}
	}
	ours := func(t testing.TB) *chirptest.Peer { return chirptest.Server(t) }
	t.Run("ours", func(t *testing.T) { play(t, "ours", ours) })
	t.Run("both", func(t *testing.T) { play(t, "both", ours) })
	t.Run("real", func(t *testing.T) {
		play(t, "both", func(t testing.TB) *chirptest.Peer { return chirptest.RealServer(t) })
	})
}
