package run

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"skeletonkey/generator/job"
)

// smallDisk makes the jobs' scratch directories lie on a file system of this size.
func (n *node) smallDisk(options string) {
	n.t.Helper()
	needRoot(n.t)
	n.base = tmpfs(n.t, "mode=1777,"+options)
}

// TestFullDisk: a full disk, in each phase, is never success, and nothing is left.
func TestFullDisk(t *testing.T) {
	t.Run("fetch", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, map[string]string{"app.sh": "", "big.txt": string(make([]byte, 1<<20))})
		n.smallDisk("size=256k")
		n.run(helperSpec{Job: n.job()}, how{}).expectError(t, job.ExitNoScratch, "fetch", "no space left")
	})
	t.Run("unpack", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, map[string]string{"app.sh": "", "big.txt": string(make([]byte, 1<<20))})
		n.smallDisk("size=256k")
		var buf bytes.Buffer
		w := gzip.NewWriter(&buf)
		_, err := w.Write(n.app)
		check(t, err)
		check(t, w.Close())
		n.app = buf.Bytes()
		n.run(helperSpec{Job: n.job()}, how{}).expectError(t, job.ExitNoScratch, "big.txt", "no space left")
	})
	t.Run("run", func(t *testing.T) {
		t.Parallel()
		n := newNode(t, script(`cat in/data; dd if=/dev/zero of=big bs=64k count=16 2>/dev/null || exit 7`))
		n.smallDisk("size=256k")
		n.run(n.dataJob(), how{}).expect(t, 7, "input\n")
	})
}

// TestEveryNumberOfFiles: wherever files run out before the application runs, the
// error says so, and nothing is left.
func TestEveryNumberOfFiles(t *testing.T) {
	t.Parallel()
	needRoot(t)
	n := newNode(t, script(`echo runs`))
	spec := n.dataJob()
	spec.UserProxy = []byte("proxy")
	failures, base := 0, n.base
	for files := 2; ; files++ {
		n.base = base
		n.smallDisk(fmt.Sprintf("size=1m,nr_inodes=%d", files))
		res := n.run(spec, how{})
		if res.exit == 0 {
			res.expect(t, 0, "runs\n")
			break
		}
		res.expectError(t, job.ExitNoScratch, "no space left")
		if failures++; t.Failed() || failures > 20 {
			t.Fatalf("with %d files", files)
		}
	}
	if failures < 6 {
		t.Errorf("only %d runs failed", failures)
	}
}

// TestFullExport: what finds no place in the export is an error for who writes it,
// and, where only closes could tell that nobody listens to, an error of the job.
func TestFullExport(t *testing.T) {
	t.Parallel()
	needRoot(t)
	n := newNode(t, script(
		`case $1 in`,
		`told) dd if=/dev/zero of=out/big bs=64k count=64 conv=fsync 2>/dev/null || exit 7;;`,
		`untold) dd if=/dev/zero bs=80k count=1 2>/dev/null >out/big;;`,
		`killed) (exec 9>out/big; dd if=/dev/zero bs=80k count=1 >&9 2>/dev/null; exec sleep 1000) & sleep 0.2;;`,
		`esac`,
		`exit 0`,
	))
	n.serveData()
	out := n.peer.Root + "/out"
	if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "run-test", out).CombinedOutput(); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v: %s", err, text)
	}
	t.Cleanup(func() { check(t, unix.Unmount(out, unix.MNT_DETACH)) })
	spec := n.dataJob()
	spec.Args = []string{"told"}
	n.run(spec, how{}).expect(t, 7, "")
	for _, way := range []string{"untold", "killed"} {
		check(t, os.Remove(out+"/big"))
		spec.Args = []string{way}
		n.run(spec, how{}).expectError(t, job.ExitNotWritten, "/out/big", "code 0")
	}
}
