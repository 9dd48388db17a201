package generator

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"skeletonkey/chirpd/auth"
	"skeletonkey/generator/job"
)

// samples are scripts of every shape; their bytes do not depend on when and where the test runs.
func samples(t *testing.T) map[string]Parts {
	t.Helper()
	fix := func(j *job.Job) *job.Job {
		j.Runtime = job.Runtime{Location: "http://data.example.org:9095/dist", Sums: []job.Sum{
			{Arch: "amd64", SHA256: strings.Repeat("a", 64), Size: 11000000},
			{Arch: "arm64", SHA256: strings.Repeat("b", 64), Size: 10500000},
		}}
		return j
	}
	full := fix(readyJob(t))
	full.Ticket.Expires = 1900000000
	full.HTTPProxy, full.UserProxy = "http://user:it's$(id)@squid:3128", "/tmp/x509up_u1000"
	full.Runtime.Location = "https://Data.example.org/a'b/$x"
	bare, err := job.Load("testdata/bare.ini", job.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	climate := fix(readyJob(t))
	climate.Ticket.Expires = 1900000000
	return map[string]Parts{
		"full":    {Job: full, Ticket: []byte(testTicket), UserProxy: []byte("SKELETONKEY_USER_PROXY\nno line feed at the end"), Version: "1.2.3"},
		"climate": {Job: climate, Ticket: []byte(testTicket), Version: "1.2.3"},
		"bare":    {Job: fix(bare), Version: "dev it's"},
	}
}

func TestScriptGolden(t *testing.T) {
	for name, parts := range samples(t) {
		t.Run(name, func(t *testing.T) {
			got, err := Script(parts)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".sh")
			if os.Getenv("SKELETONKEY_UPDATE") == "1" {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), string(got)); d != "" {
				t.Errorf("%s (-want +got):\n%s", file, d)
			}
			f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(bytes.NewReader(got), file)
			if err != nil {
				t.Fatal(err)
			}
			checkAssignments(t, f)
		})
	}
}

// checkAssignments makes sure that the script changes no variable that the application could have.
func checkAssignments(t *testing.T, f *syntax.File) {
	syntax.Walk(f, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Subshell:
			return false
		case *syntax.FuncDecl:
			return n.Name.Value != "sk_get" // runs in a subshell
		case *syntax.Assign:
			if n.Name != nil && !strings.HasPrefix(n.Name.Value, "sk_") && n.Name.Value != "PATH" {
				t.Errorf("line %d sets %s", n.Pos().Line(), n.Name.Value)
			}
		}
		return true
	})
}

func TestScriptShellcheck(t *testing.T) {
	peer(t, "shellcheck")
	files, err := filepath.Glob("testdata/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out, err := exec.Command("shellcheck", append([]string{"--shell=sh", "--norc", "--severity=style"}, files...)...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestScriptIsSmall(t *testing.T) {
	parts := samples(t)["full"]
	ticket, err := auth.NewTicket("data.example.org:9094", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	parts.Ticket = ticket.Format()
	script, err := Script(parts)
	if err != nil {
		t.Fatal(err)
	}
	if len(script) > 20_000 {
		t.Errorf("%d bytes", len(script))
	}
}

func TestScriptRefuses(t *testing.T) {
	for name, change := range map[string]func(p *Parts){
		"no location":    func(p *Parts) { p.Job.Runtime.Location = "" },
		"no sums":        func(p *Parts) { p.Job.Runtime.Sums = nil },
		"no ticket":      func(p *Parts) { p.Ticket = nil },
		"no proxy":       func(p *Parts) { p.UserProxy = nil },
		"odd machine":    func(p *Parts) { p.Job.Runtime.Sums[0].Arch = "a64" },
		"not plain text": func(p *Parts) { p.UserProxy = []byte("a\x00b") },
		"version":        func(p *Parts) { p.Version = "1\nrm -rf /" },
		"job":            func(p *Parts) { p.Job.Server = "" },
	} {
		parts := samples(t)["full"]
		change(&parts)
		if _, err := Script(parts); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	target, link, old := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "old")
	for _, f := range []string{target, old} {
		if err := os.WriteFile(f, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{filepath.Join(dir, "new"), link, old} {
		if err := WriteFile(f, []byte("after")); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(f)
		if err != nil || info.Mode() != 0o700 {
			t.Errorf("%s: mode %v, %v", f, info.Mode(), err)
		}
	}
	if got, _ := os.ReadFile(target); string(got) != "before" {
		t.Errorf("the link was followed")
	}
	// A directory cannot be replaced: an error, and nothing beside it.
	if err := WriteFile(dir+"/sub/x", nil); err == nil {
		t.Error("wrote into a directory that is not there")
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "sub"), nil); err == nil {
		t.Error("replaced a directory")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
}
