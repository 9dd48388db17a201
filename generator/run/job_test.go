package run

import (
	"testing"
)

// TestWholeJob: an application reads and writes data, below CHIRP_MOUNT and by the
// links, and its results are in the export afterwards.
func TestWholeJob(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(
			`cat in/data "$CHIRP_MOUNT/in/data"`,
			`echo "$@" >out/args`,
			`echo deep >"$CHIRP_MOUNT/out/by-mount"`,
			`(: >in/new) 2>/dev/null && echo wrote where it may only read`,
			`echo "$CHIRP_MOUNT $SKELETONKEY_SERVER $PWD" | sed "s,$SKELETONKEY_SCRATCH,WORK,"`,
		))
		n.user = user
		spec := n.dataJob()
		spec.Job.Application.Arguments, spec.Args = []string{"a", "b"}, []string{"c"}
		n.run(spec, how{}).expect(t, 0, "input\ninput\n/chirp/"+n.peer.Addr+" "+n.peer.Addr+" WORK\n")
		n.holds("/out/args", "a b c\n")
		n.holds("/out/by-mount", "deep\n")
	})
}
