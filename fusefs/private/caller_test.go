package private

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// runHere runs a plan in this process, with standard output to a string.
func runHere(t *testing.T, p Plan) (Result, string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, w, err := os.Pipe()
	check(t, err)
	defer r.Close()
	p.Stdout = w
	res, err := Run(ctx, p, nil)
	w.Close()
	out, readErr := io.ReadAll(r)
	check(t, readErr)
	return res, string(out), err
}

// TestRawBytes: arguments, environment, directory and places are any bytes.
func TestRawBytes(t *testing.T) {
	dir := openDir(t) + "/d\n\xff"
	check(t, os.MkdirAll(dir, 0o755))
	p := script(`printf '%s|' "$@" "$V" "$(pwd)"; cat /chirp/p*/hello`, "\xfe", "", "two\nlines")
	p.Env = []string{"PATH=/usr/bin:/bin", "V=\xfd"}
	p.Dir = dir
	res, out, err := runHere(t, p.at("/chirp/p\xfc"))
	want := "\xfe||two\nlines|\xfd|" + dir + "|hello, world\n"
	if err != nil || res.ExitCode != 0 || out != want {
		t.Errorf("got %q, want %q; %+v, %v", out, want, res, err)
	}
}

// TestNothingLeftInCaller: no descriptor and no child of this process, however
// a run ends.
func TestNothingLeftInCaller(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		check(t, err)
		return len(entries)
	}
	missing := planFor("no-such-program")
	_, _, _ = runHere(t, planFor("true")) // the runtime opens some of its own
	before := descriptors()
	for name, p := range map[string]Plan{
		"ends": script("exit 1"), "killed": script("kill -9 $$"), "missing": missing,
		"serve": withConfig(testConfig{Serve: "error"}, "true"), "close": withConfig(testConfig{Close: "error"}, "true"),
	} {
		for _, mode := range []PIDMode{PIDAuto, PIDNever} {
			p.PIDNamespace = mode
			_, _, _ = runHere(t, p)
			if after := descriptors(); after != before {
				t.Errorf("%s: %d descriptors, %d before", name, after, before)
			}
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); !errors.Is(err, syscall.ECHILD) {
				t.Errorf("%s: a child is left: %d, %v", name, pid, err)
			}
		}
	}
}

// TestBadPlans: what cannot be done is said at once.
func TestBadPlans(t *testing.T) {
	two := func(a, b string) Plan {
		return Plan{Argv: []string{"true"}, Mounts: []Mount{{Where: a}, {Where: b}}}
	}
	for text, p := range map[string]Plan{
		"no command":        {},
		"zero byte":         planFor("a\x00b"),
		"not absolute":      {Argv: []string{"true"}, Dir: "here"},
		"absolute, clean":   planFor("true").at("/chirp/../x"),
		"other than /":      planFor("true").at("/"),
		"would hide /a":     two("/a", "/a"),
		"would hide /a/b/c": two("/a/b/c", "/a"),
	} {
		if _, err := Run(context.Background(), p, nil); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}
