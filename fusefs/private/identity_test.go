package private

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const noCaps = "0000000000000000"

// TestIdentity: an ordinary user is himself, with his groups and no privilege;
// root stays root. Secrets cannot be had from our processes.
func TestIdentity(t *testing.T) {
	needRoot(t)
	dir := openDir(t)
	check(t, os.WriteFile(dir+"/shared", []byte("group\n"), 0o040))
	check(t, os.Chown(dir+"/shared", 0, group))
	// The parent is the inner; without a PID namespace the outer is its own.
	text := `id -u; id -g; sed -n '/^Cap\|^NoNew/p' /proc/self/status; p=$$
		for i in $(seq $1); do
			p=$(sed -n 's/^PPid:.//p' /proc/$p/status)
			cat /proc/$p/environ >/dev/null 2>&1 && ls /proc/$p/fd/ >/dev/null && echo open || echo closed
		done; `
	eachWay(t, func(t *testing.T, v variant) {
		caps, parents := noCaps, 1
		who, nnp, proc := nobody, 1, "closed"
		if !v.user {
			_, mine := getCaps()
			who, nnp, proc, caps = 0, 0, "open", fmt.Sprintf("%016x", mine)
		}
		if v.mode == PIDNever {
			proc, parents = proc+"\n"+proc, 2
		}
		o := job{plan: script(text+"cat "+dir+"/shared", fmt.Sprint(parents))}.of(v).run(t)
		o.expect(t, 0, fmt.Sprintf("%d\n%d\nCapInh:\t%s\nCapPrm:\t%s\nCapEff:\t%s\nCapBnd:\t%s\nCapAmb:\t%s\nNoNewPrivs:\t%d\n%s\ngroup\n",
			who, who, noCaps, caps, caps, caps, noCaps, nnp, proc))
	})
}

// TestSetuid: what makes one root outside does not inside.
func TestSetuid(t *testing.T) {
	t.Parallel()
	needRoot(t)
	id, err := exec.LookPath("id")
	check(t, err)
	data, err := os.ReadFile(id)
	check(t, err)
	file := openDir(t) + "/id"
	check(t, os.WriteFile(file, data, 0o755))
	check(t, os.Chmod(file, 0o4755|os.ModeSetuid))
	cmd := exec.Command(file, "-u")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.Output(); err != nil || string(out) != "0\n" {
		t.Skipf("setuid programs do not work here: %q, %v", out, err)
	}
	job{user: true, plan: planFor(file, "-u")}.run(t).expect(t, 0, fmt.Sprintln(nobody))
}

// TestContainerRoot: root without the right to mount, as in many containers,
// goes the user's way and has inside no more than outside.
func TestContainerRoot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	setup := `exec setpriv --bounding-set=-sys_admin,-net_raw --inh-caps=-all -- "$0"`
	o := job{setup: setup, plan: script("id -u; sed -n 's/^CapEff:.//p' /proc/self/status; cat " + where + "/hello")}.run(t)
	_, mine := getCaps()
	o.expect(t, 0, fmt.Sprintf("0\n%016x\nhello, world\n", mine&^(1<<unix.CAP_SYS_ADMIN|1<<unix.CAP_NET_RAW)))
	if !strings.HasPrefix(o.Result.Way, "user") {
		t.Errorf("way %q", o.Result.Way)
	}
}
