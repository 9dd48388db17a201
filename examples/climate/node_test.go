package climate

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// tools is everything but sh and awk that the application may use.
var tools = []string{"cat", "mkdir", "mv", "rm", "tr"}

// node is one kind of machine the application runs on: a shell, an awk, and a PATH that holds
// nothing but that awk and the tools.
type node struct {
	name  string
	shell []string
	bin   string
}

// nodes prepares the machines whose programs are here; each runs as a subtest.
func nodes(t *testing.T, test func(*testing.T, node)) {
	t.Helper()
	for _, n := range []struct{ shell, awk string }{
		{"dash", "mawk"},
		{"bash", "gawk"},
		{"busybox", "busybox"},
	} {
		t.Run(n.shell+"+"+n.awk, func(t *testing.T) {
			test(t, newNode(t, n.shell, n.awk))
		})
	}
}

func newNode(t *testing.T, shell, awk string) node {
	t.Helper()
	n := node{name: shell, shell: []string{peer(t, shell)}, bin: t.TempDir()}
	link(t, peer(t, awk), filepath.Join(n.bin, "awk"))
	for _, tool := range tools {
		target := n.shell[0]
		if shell != "busybox" {
			target = peer(t, tool)
		}
		link(t, target, filepath.Join(n.bin, tool))
	}
	if shell == "busybox" {
		n.shell = append(n.shell, "sh")
	}
	return n
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// run runs a script of the example and returns its exit code and what it said.
func (n node) run(t *testing.T, script string, args ...string) (code int, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // against an application that hangs
	defer cancel()
	cmd := exec.CommandContext(ctx, n.shell[0], append(append(n.shell[1:len(n.shell):len(n.shell)], script), args...)...)
	cmd.Env = []string{"PATH=" + n.bin}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// climate runs the application, which must succeed, and returns the table and the plot.
func (n node) climate(t *testing.T, inputs ...string) (table, plot string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "the results")
	if err := os.Mkdir(out, 0o777); err != nil {
		t.Fatal(err)
	}
	if code, said := n.run(t, "app/climate.sh", append(inputs[:len(inputs):len(inputs)], out)...); code != 0 {
		t.Fatalf("exit code %d\n%s", code, said)
	}
	all := contents(t, out)
	if len(all) != 2 {
		t.Errorf("%d names in the output directory, want 2", len(all))
	}
	return all[Table], all[Plot]
}

// contents reads a directory of files; a directory in it shows as its mode.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if e.IsDir() {
			all[e.Name()] = e.Type().String()
			continue
		}
		all[e.Name()] = read(t, filepath.Join(dir, e.Name()))
	}
	return all
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// write makes a file in a directory of its own and returns its path.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
