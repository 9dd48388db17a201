package fusefs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"

	"skeletonkey/chirpd/chirptest"
)

// skipped are tests of the suite that cannot pass, and why.
var skipped = map[string]string{
	"Fallocate":         "the protocol has no fallocate; programs fall back to writing",
	"FallocateKeepSize": "the protocol has no fallocate",
	"SetattrSymlink":    "the protocol's utime follows links, so a link's own times cannot be set",
}

// TestPosix runs go-fuse's suite on a plain directory, to see that it can pass here,
// and on the mount.
func TestPosix(t *testing.T) {
	t.Run("plain", func(t *testing.T) { posix(t, t.TempDir(), nil) })
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		posix(t, mounted(t, p, p.Addr).dir, skipped)
	})
}

func posix(t *testing.T, dir string, skipped map[string]string) {
	for name, test := range posixtest.All {
		t.Run(name, func(t *testing.T) {
			if why, ok := skipped[name]; ok {
				t.Skip(why)
			}
			sub := filepath.Join(dir, name)
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			test(t, sub)
		})
	}
}
