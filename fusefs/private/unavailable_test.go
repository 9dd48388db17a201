package private

import (
	"strings"
	"syscall"
	"testing"
)

// newPID lets a helper mount a /proc of its own, whose settings it may write.
var newPID = syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}

// bareDev makes a /dev without fuse.
const bareDev = `mkdir $TEST_DIR/dev; mount -t tmpfs dev $TEST_DIR/dev; cp -a /dev/null /dev/zero /dev/tty $TEST_DIR/dev
	mount --bind $TEST_DIR/dev /dev
`

// TestUnavailable: where it cannot work, Run and Probe name the cause and the
// way out (case 35).
func TestUnavailable(t *testing.T) {
	t.Parallel()
	needRoot(t)
	off := "mount -t proc proc /proc; echo 0 >/proc/sys/user/max_user_namespaces"
	for i, c := range []struct {
		name string
		job  job
		is   string
		text []string
	}{
		{"user namespaces off", job{user: true, userNS: true, attr: newPID, setup: off}, "ErrNoNamespace",
			[]string{"user.max_user_namespaces = 0", "ask the administrator"}},
		{"no /dev/fuse", job{user: true, setup: bareDev}, "ErrNoFuse", []string{"there is no /dev/fuse", "modul"}},
		{"no /dev/fuse for root", job{setup: bareDev}, "ErrNoFuse", []string{"there is no /dev/fuse"}},
		{"/dev/fuse forbidden", job{user: true, setup: bareDev + "mknod -m 600 /dev/fuse c 10 229"}, "ErrNoFuse",
			[]string{"not open to this user", "chmod 0666"}},
		{"/dev/fuse of another kind", job{user: true, setup: bareDev + "mknod -m 666 /dev/fuse c 10 250"}, "ErrNoFuse",
			[]string{"the kernel has no FUSE"}},
		{"no device at all", job{user: true, setup: bareDev + "cp -a /dev/null /dev/fuse"}, "ErrNoFuse", []string{"FUSE"}},
	} {
		for _, probe := range []bool{false, true}[:2-i/3] {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				j := c.job
				j.plan, j.probe = script("echo never"), probe
				o := j.run(t)
				for _, text := range c.text {
					o.expectError(t, c.is, text)
				}
				if o.Result.Started || o.stdout != "" {
					t.Errorf("result %+v, output %q", o.Result, o.stdout)
				}
			})
		}
	}
}

// TestProbe: where it can work, nothing is said.
func TestProbe(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		o := job{probe: true, plan: script("echo never")}.of(v).run(t)
		o.expect(t, 0, "")
	})
}

// TestMaskedProc: in a container /proc cannot be mounted anew; then there is
// no PID namespace, and the log says so.
func TestMaskedProc(t *testing.T) {
	t.Parallel()
	needRoot(t)
	mask := "mount --bind /dev/null /proc/version"
	o := job{user: true, setup: mask, plan: script("setsid sleep 1000 & cat " + where + "/hello")}.run(t)
	o.expect(t, 0, "hello, world\n")
	for _, text := range []string{"private namespace refused", "mount /proc", "no PID namespace", `way="user and mount namespace"`} {
		if !strings.Contains(o.log, text) {
			t.Errorf("the log lacks %q:\n%s", text, o.log)
		}
	}
}

// TestWayInLog: the way taken is named.
func TestWayInLog(t *testing.T) {
	t.Parallel()
	for mode, want := range map[PIDMode]string{PIDAuto: "user, mount and PID namespace", PIDNever: "user and mount namespace"} {
		o := job{plan: script("true")}.of(variant{user: true, mode: mode}).run(t)
		if o.Result.Way != want || !strings.Contains(o.log, `way="`+want+`"`) {
			t.Errorf("way %q, log:\n%s", o.Result.Way, o.log)
		}
	}
}
