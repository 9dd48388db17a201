package run

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestBareEnvironment is a part of case 40: a job needs nothing but a PATH.
func TestBareEnvironment(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(`cat in/data; echo "$HOME"; umask; echo x >out/new; touch mine; ls -l mine | cut -c 1-10`))
		n.user = user
		// Of TMPDIR nothing is known either: /tmp is next.
		spec := n.dataJob()
		r := n.start(spec, how{onlyMy: true, env: []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}, before: "umask 077"})
		r.wait().expect(t, 0, "input\n/nonexistent\n0077\n-rw-------\n")
		n.holds("/out/new", "x\n")
		if !strings.Contains(r.log(), "dir=/tmp/"+scratchPrefix) {
			t.Errorf("another scratch directory than in /tmp:\n%s", r.log())
		}
	})
}

// TestNoexecScratch is the rest of case 40: a scratch directory that is mounted
// noexec is passed over, and where there is no other, the error says so.
func TestNoexecScratch(t *testing.T) {
	t.Parallel()
	needRoot(t)
	n := newNode(t, script(`case $PWD in */tmp/`+scratchPrefix+`*) echo right;; esac`))
	noexec := tmpfs(t, "noexec,mode=1777")
	n.run(helperSpec{Job: n.job()}, how{env: []string{"OSG_WN_TMP=" + noexec}}).expect(t, 0, "right\n")
	all := `exec 9<"$0"; mount --bind /tmp /tmp; mount -o remount,bind,noexec /tmp; exec /proc/self/fd/9`
	n.run(helperSpec{Job: n.job()}, how{ownMounts: true, before: all}).expectError(t, 73, n.base, "noexec", "TMPDIR")
}

// TestReadOnlyDirectory: a job does not write into the directory from which it is
// started.
func TestReadOnlyDirectory(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo runs`))
	n.user = true
	dir := n.dir + "/start"
	check(t, os.Mkdir(dir, 0o555))
	n.run(helperSpec{Job: n.job()}, how{dir: dir}).expect(t, 0, "runs\n")
}

// TestXProxy: the X.509 proxy file is private, announced, and never left, not even
// with a preserved directory.
func TestXProxy(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`ls -l "$X509_USER_PROXY" | cut -c 1-10; cat "$X509_USER_PROXY"`, `[ -z "$1" ] || exec sleep 1000`))
	spec := helperSpec{Job: n.job(), UserProxy: []byte("secret proxy\n")}
	n.run(spec, how{before: "umask 0; export X509_USER_PROXY=/old"}).expect(t, 0, "-rw-------\nsecret proxy\n")
	spec.Preserve = true
	r := n.start(spec, how{})
	r.end().expect(t, 0, "-rw-------\nsecret proxy\n")
	kept, err := filepath.Glob(n.base + "/" + preservedPrefix + "*")
	if err != nil || len(kept) != 1 || !exists(kept[0]+"/work/app.sh") || exists(kept[0]+"/"+proxyName) {
		t.Errorf("preserved: %q, %v", kept, err)
	}
	if !strings.Contains(r.log(), "level=WARN msg=\"the scratch directory is preserved\" dir="+kept[0]) {
		t.Errorf("it is not said where the directory is:\n%s", r.log())
	}
	// Nor does it stay when the program is killed.
	spec.Args = []string{"wait"}
	killed := n.start(spec, how{})
	killed.line()
	killed.line()
	killed.signal(syscall.SIGKILL)
	killed.end()
	eventually(t, func() bool { return len(killed.processes()) == 0 }, killed.log)
	if left, _ := filepath.Glob(n.base + "/" + preservedPrefix + "*/" + proxyName); left != nil {
		t.Errorf("left: %q", left)
	}
	// The next job does not sweep it.
	n.start(helperSpec{Job: n.job()}, how{}).end()
	if !exists(kept[0]) {
		t.Error("swept")
	}
}

// TestSecret: the ticket is nowhere where the application could find it.
func TestSecret(t *testing.T) {
	users(t, func(t *testing.T, user bool) {
		n := newNode(t, script(
			`cat in/data`,
			`k="PRIVATE[ ]KEY"`,
			`env | grep -q "$k" && echo in the environment`,
			`grep -rq "$k" "${SKELETONKEY_SCRATCH%/work}" 2>/dev/null && echo in a file`,
			`for p in /proc/[0-9]*; do`,
			`  grep -aq "$k" $p/cmdline $p/environ 2>/dev/null && echo of a process`,
			`  [ "$1" = root ] || for f in $p/fd/*; do grep -aq "$k" $f </dev/null 2>/dev/null && echo open in a process; done`,
			`done`,
			`ls /proc/self/fd | tr '\n' ' '`, // ls has one to read the directory
		))
		n.user = user
		spec := n.dataJob()
		if !user {
			spec.Args = []string{"root"} // who can see everything
		}
		n.run(spec, how{}).expect(t, 0, "input\n0 1 2 3 ")
		// The search finds what is there to be found.
		spec.Job.Environment = map[string]string{"X": spec.Ticket}
		spec.Job.Application.Script, spec.Job.Application.Location, spec.Job.Application.SHA256 = "sh", "file://"+n.dir+"/app.tar", ""
		check(t, os.WriteFile(n.dir+"/app.tar", n.app, 0o644))
		spec.Job.Application.Arguments = []string{"-c", `echo "$X" >mine; exec 5<mine; . ./app.sh`, "sh"}
		res := n.run(spec, how{})
		for _, text := range []string{"in the environment", "in a file", "of a process"} {
			if !strings.Contains(res.stdout, text) {
				t.Errorf("not found %s: %q", text, res.stdout)
			}
		}
	})
}
