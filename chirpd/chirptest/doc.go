// Package chirptest has what tests of this project run against: a server of ours
// and a real chirp_server (Peer), a relay that makes the way between slow, cut or
// deaf and counts round trips (Relay), conversations kept as data (Play), and a
// server that does as its test says (Scripted). Only tests import it.
//
// Everything made here ends with the test that made it.
package chirptest

import (
	"os"
	"testing"
)

// Missing skips a test whose peer program is not there, or fails it where
// SKELETONKEY_REQUIRE_PEERS=1 says that it must run.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
		t.Fatalf("%s, and SKELETONKEY_REQUIRE_PEERS=1", what)
	}
	t.Skip(what)
}
