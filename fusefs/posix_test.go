package fusefs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hanwen/go-fuse/v2/posixtest"

	"skeletonkey/chirpd/chirptest"
)

// Tests of the suite that cannot pass, and why: anywhere, on a mount, and on a mount of
// a real server's export.
var (
	never = map[string]string{
		"FcntlFlockLocksFile": "the test expects that locks of one process exclude each other, which they do nowhere",
		"OpenSymlinkRace":     "on one device with /etc it fails by its nature; on a mount, a name that is replaced twice within one open is ESTALE",
	}
	neverMounted = map[string]string{
		"Fallocate":         "the protocol has no fallocate; programs fall back to writing",
		"FallocateKeepSize": "the protocol has no fallocate",
		"SetattrSymlink":    "the protocol's utime follows links, so a link's own times cannot be set",
	}
	neverReal = map[string]string{
		"RenameOpenDir": "a real server keeps an ACL in each directory, so that none is empty and can be replaced",
		"FileBasic":     "a real server takes rights of group and others from the mode of a new file",
	}
)

// TestPosix runs go-fuse's suite on a plain directory, to see that it can pass here, and
// on mounts.
func TestPosix(t *testing.T) {
	t.Run("plain", func(t *testing.T) { posix(t, t.TempDir()) })
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		skips := []map[string]string{neverMounted}
		if p.Real {
			skips = append(skips, neverReal)
		}
		posix(t, mounted(t, p, p.Addr).dir, skips...)
	})
}

func posix(t *testing.T, dir string, skips ...map[string]string) {
	for name, test := range posixtest.All {
		t.Run(name, func(t *testing.T) {
			for _, skip := range append(skips, never) {
				if why, ok := skip[name]; ok {
					t.Skip(why)
				}
			}
			sub := filepath.Join(dir, name)
			if err := os.Mkdir(sub, 0o755); err != nil {
				t.Fatal(err)
			}
			test(t, sub)
		})
	}
}
