package generator

import (
	"os/exec"
	"strings"
	"testing"
)

// mounted makes the node's script run where a tmpfs with the options is mounted on its directory tmp,
// in a namespace of its own; what may run there is checked first.
func (n *node) mounted(options string) {
	n.t.Helper()
	within := []string{"unshare", "--user", "--map-root-user", "--mount", "sh", "-c",
		`mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"`, "sh", options, n.path("tmp")}
	if out, err := exec.Command(within[0], append(within[1:], "true")...).CombinedOutput(); err != nil {
		n.t.Skipf("no namespaces of one's own here: %v: %s", err, out)
	}
	n.shell = append(within, n.shell...)
}

// Case 40: no program can be run in TMPDIR.
func TestNoexecScratch(t *testing.T) {
	t.Run("next place", func(t *testing.T) {
		n := newNode(t)
		n.mounted("noexec")
		n.env = []string{n.env[0], "OSG_WN_TMP=" + n.path("tmp"), "TMPDIR=" + n.path("work")}
		if said := n.mustRun("-d"); n.used() != "work/skeletonkey-0" || !strings.Contains(said, "cannot be written, or programs cannot be run") {
			t.Errorf("used %s: %s", n.used(), said)
		}
		if n.fetched() != 1 {
			t.Errorf("fetched %d times", n.fetched())
		}
	})
	t.Run("no other", func(t *testing.T) {
		n := newNode(t)
		n.mounted("noexec")
		n.env = []string{n.env[0], "TMPDIR=" + n.path("tmp"), "SKELETONKEY_CACHE=" + n.path("tmp/cache")}
		n.tweak = []string{`"${TMPDIR:-}" /tmp; do`, `"${TMPDIR:-}"; do`}
		code, said := n.run()
		if code != 73 || !strings.Contains(said, "set SKELETONKEY_CACHE or TMPDIR") || n.fetched() != 0 {
			t.Errorf("exit code %d: %s", code, said)
		}
	})
}

// A disk that fills during the fetch is no reason to try the web again, but another place.
func TestFullScratch(t *testing.T) {
	for _, tool := range []string{"curl", "wget", "wget=busybox", "python3"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.mounted("size=64k")
			n.only(tool, "sha256sum", "mount", "dash")
			n.job.Runtime.Location = web.URL + "/large/" + t.Name()
			for i := range n.job.Runtime.Sums {
				n.job.Runtime.Sums[i].SHA256, n.job.Runtime.Sums[i].Size = sumOf(largeStandIn), int64(len(largeStandIn))
			}
			n.setenv("OSG_WN_TMP="+n.path("tmp"), "HOME=/nonexistent", "TMPDIR="+n.path("work"))
			if said := n.mustRun("-d"); n.used() != "work/skeletonkey-0" || !strings.Contains(said, "no space for the runtime") {
				t.Errorf("used %s: %s", n.used(), said)
			}
			if n.fetched() != 2 {
				t.Errorf("fetched %d times", n.fetched())
			}
		})
	}
}
