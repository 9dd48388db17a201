package run

import (
	"strings"
	"syscall"
	"testing"

	"skeletonkey/chirpd/chirptest"
)

// needHelper skips a test where an ordinary user could not mount at all.
func needHelper(t *testing.T) {
	t.Helper()
	needRoot(t)
	if !exists("/usr/bin/fusermount3") {
		chirptest.Missing(t, "no fusermount3 here (Debian package fuse3)")
	}
}

// TestWithoutNamespaces is case 35: where there are none, fusermount3 mounts the
// data below the scratch directory, and CHIRP_MOUNT tells.
func TestWithoutNamespaces(t *testing.T) {
	t.Parallel()
	needHelper(t)
	n := newNode(t, script(
		`cat in/data "$CHIRP_MOUNT/in/data"`,
		`echo "$CHIRP_MOUNT" >out/where`,
		`case $CHIRP_MOUNT in "${SKELETONKEY_SCRATCH%/work}"/mnt) echo right;; esac`,
		`setsid sleep 1000 & exec 9<in/data`,
		`exit 5`,
	))
	res := n.run(n.dataJob(), how{noNamespaces: true})
	res.expect(t, 5, "input\ninput\nright\n")
	for _, text := range []string{"cannot mount in this way", "max_user_namespaces = 0", "fusermount3"} {
		if !strings.Contains(res.log, text) {
			t.Errorf("no %q in the log:\n%s", text, res.log)
		}
	}
}

// TestWithoutNamespacesKilled: there, too, nothing is left when the program is
// killed, or the one that serves the mount.
func TestWithoutNamespacesKilled(t *testing.T) {
	t.Parallel()
	needHelper(t)
	n := newNode(t, script(`setsid sleep 1000 & cat in/data; exec sleep 1001`))
	r := n.start(n.dataJob(), how{noNamespaces: true})
	r.line()
	r.signal(syscall.SIGKILL)
	if res := r.end(); res.exit != -9 {
		t.Errorf("exit %d", res.exit)
	}
	r.eventuallyNothing()

	r = n.start(n.dataJob(), how{noNamespaces: true})
	r.line()
	check(t, syscall.Kill(r.process("private-namespace"), syscall.SIGKILL))
	r.wait().expectError(t, 74, "died")
}

// TestNoWayToMount is the rest of case 35: a clear error, with its own code.
func TestNoWayToMount(t *testing.T) {
	t.Parallel()
	needRoot(t)
	needHelper(t)
	n := newNode(t, script(`echo never`))
	n.run(n.dataJob(), how{noNamespaces: true, before: bareDev}).
		expectError(t, 71, "max_user_namespaces = 0", "fuse device not found")
	n.run(n.dataJob(), how{ownMounts: true, before: bareDev}).expectError(t, 71, "there is no /dev/fuse", "load the kernel module")
}

// bareDev makes a /dev without fuse.
const bareDev = `d=$TMPDIR/../dev; mkdir -p $d; touch $d/null; mount --bind /dev/null $d/null; mount --rbind $d /dev`

// TestUsualPlaceTaken: where /chirp can be neither found nor made, the data is below
// the scratch directory, in a namespace all the same.
func TestUsualPlaceTaken(t *testing.T) {
	t.Parallel()
	needHelper(t)
	n := newNode(t, script(`cat in/data; case $CHIRP_MOUNT in "${SKELETONKEY_SCRATCH%/work}"/mnt) echo right;; esac`))
	// A plain directory as the root cannot be replaced.
	const chroot = `r=$TMPDIR/../root; mkdir $r
		for d in bin dev etc lib lib64 proc tmp usr; do
			if [ -L /$d ]; then cp -P /$d $r; elif [ -d /$d ]; then mkdir $r/$d; mount --rbind /$d $r/$d; fi
		done
		exec chroot $r "$0"`
	n.run(n.dataJob(), how{ownMounts: true, dir: "/", before: chroot}).expect(t, 0, "input\nright\n")
}
