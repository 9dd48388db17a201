package generator

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Cases 36 and 39: arguments and standard input reach the runtime as they are; so do job and ticket.
func TestHandsOver(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		n.stdin = "every byte\x00\xff\n of it \\n"
		n.code = 7
		args := []string{"two words", "a;touch X", "$(id)", "", "line\nfeed", "-d", "*", `\`, "'\"`"}
		code, said := n.run(append([]string{"-d", "--preserve-dir", "--"}, args...)...)
		if code != 7 {
			t.Fatalf("exit code %d: %s", code, said)
		}
		want := append([]string{"run", "--debug", "--preserve-dir", "--job-fd", "3", "--ticket-fd", "4", "--"}, args...)
		if d := cmp.Diff(want, n.argv()); d != "" {
			t.Errorf("argv (-want +got):\n%s", d)
		}
		encoded, err := n.job.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"stdin": n.stdin, "job": string(encoded), "ticket": testTicket, "proxy": ""} {
			if got := n.recorded(name); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		for _, dir := range []string{"home", "tmp", "work"} {
			if files := n.left(dir); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		}
	})
}

// Descriptors 0, 1 and 2 may be closed: the runtime is fetched and checked all the same, and the application has
// /dev/null in their place.
func TestClosedDescriptors(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		words := n.shell
		for closed, numbers := range map[string]string{">&-": "1", "<&- >&- 2>&-": "012"} {
			n.shell = append([]string{"dash", "-c", `exec "$@" ` + closed, "sh"}, words...)
			ok(t, os.RemoveAll(n.path("home/.cache")))
			if code, said := n.run("--debug"); code != 0 {
				t.Errorf("%s: exit code %d: %s", closed, code, said)
				continue
			}
			for number, file := range strings.Fields(n.recorded("std")) {
				if want := strings.Contains(numbers, itoa(number)); (file == "/dev/null") != want {
					t.Errorf("%s: descriptor %d is %s", closed, number, file)
				}
			}
		}
	})
}
