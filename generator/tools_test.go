package generator

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// basics are the programs, all of POSIX but readlink, that the script may count on besides sh.
var basics = []string{"cat", "chmod", "cp", "date", "env", "id", "ln", "ls", "mkdir", "mv", "printf", "readlink", "rm", "sh", "sleep", "uname", "wc"}

// only makes PATH a directory with the basics and what is given as NAME or NAME=PROGRAM.
func (n *node) only(programs ...string) {
	n.t.Helper()
	n.mkdir("bin")
	for _, p := range append(append([]string{}, basics...), programs...) {
		name, target, ok := strings.Cut(p, "=")
		if !ok {
			target = name
		}
		var err error
		if name == "python3" {
			target, err = pythonPath()
		} else {
			target, err = exec.LookPath(target)
		}
		if err != nil {
			n.t.Skip(err)
		}
		os.Remove(n.path("bin/" + name)) // one of the basics, replaced
		if err := os.Symlink(target, n.path("bin/"+name)); err != nil {
			n.t.Fatal(err)
		}
	}
	n.env[0] = "PATH=" + n.path("bin")
}

// pythonPath finds the interpreter itself, behind any wrapper that needs a PATH of its own.
var pythonPath = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

// Case 41: any one of the tools will do, and what is missing is said.
func TestTools(t *testing.T) {
	for name, c := range map[string]struct {
		programs []string
		code     int
		says     string
	}{
		"curl":         {[]string{"curl", "sha256sum"}, 0, "with curl"},
		"wget":         {[]string{"wget", "sha256sum"}, 0, "with wget"},
		"busybox wget": {[]string{"wget=busybox", "sha256sum"}, 0, "with small-wget"},
		"python3":      {[]string{"python3"}, 0, "with python3"},
		"shasum":       {[]string{"curl", "shasum", "perl"}, 0, ""},
		"openssl":      {[]string{"curl", "openssl"}, 0, ""},
		"broken curl":  {[]string{"curl=false", "wget", "sha256sum"}, 0, "with wget"},
		"no tool":      {[]string{"sha256sum"}, 71, "none of curl, wget and python3 is here"},
		"no sums":      {[]string{"curl"}, 71, "none of sha256sum, shasum, openssl and python3 works here"},
		"odd machine":  {[]string{"curl", "sha256sum", "uname=echo"}, 71, "no runtime for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.only(c.programs...)
			code, said := n.run("-d")
			if code != c.code || !strings.Contains(strings.ReplaceAll(said, "(", "with "), c.says) {
				t.Errorf("exit code %d: %s", code, said)
			}
			if (n.recorded("argv") != "") != (c.code == 0) {
				t.Errorf("the runtime ran, or did not")
			}
		})
	}
}

// Case 42: what is missing, cut or wrong is never used, and nothing of it stays.
func TestBadDownloads(t *testing.T) {
	for how, c := range map[string]struct {
		code int
		says string
	}{
		"missing": {69, "cannot be fetched"}, "cut": {69, ""}, "wrong": {65, "is not the program that this job was made with"},
	} {
		for _, tool := range []string{"curl", "wget", "wget=busybox", "python3"} {
			t.Run(how+" "+tool, func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.only(tool, "sha256sum")
				n.hurry()
				n.job.Runtime.Location = web.URL + "/" + how + "/" + tool
				code, said := n.run()
				if code != c.code || !strings.Contains(said, c.says) {
					t.Errorf("exit code %d: %s", code, said)
				}
				if files := append(n.left("home"), n.left("tmp")...); len(files) > 0 || n.recorded("argv") != "" {
					t.Errorf("left behind: %v", files)
				}
				if _, err := os.Stat(n.path("home/.cache/skeletonkey/runtime/skeletonkey-" + sumOf(standIn))); err == nil {
					t.Error("something is there under the final name")
				}
			})
		}
	}
}

func TestCutDownloadIsRetried(t *testing.T) {
	for _, tool := range []string{"curl", "wget", "wget=busybox", "python3"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.only(tool, "sha256sum")
			if tool != "curl" { // one of them with the pauses
				n.hurry()
			}
			n.job.Runtime.Location = web.URL + "/cutonce/" + tool
			n.mustRun()
		})
	}
}

// A server that stops sending does not hold a job for ever.
func TestStalledDownload(t *testing.T) {
	for _, tool := range []string{"curl", "wget=busybox"} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			n := newNode(t)
			n.only(tool, "sha256sum")
			n.tweak = []string{"sk_patience=60", "sk_patience=2", "sk_pauses='1 3 0'", "sk_pauses=0"}
			n.job.Runtime.Location = web.URL + "/hang/" + t.Name()
			if code, said := n.run(); code != 69 || !strings.Contains(said, "exit code 137") {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.hurry()
	n.job.Runtime.Location = "http://127.0.0.1:9/dist"
	if code, said := n.run(); code != 69 || !strings.Contains(said, "http://127.0.0.1:9/dist/skeletonkey-linux-") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// The runtime may lie on a file system that nodes share.
func TestRuntimeFromFiles(t *testing.T) {
	for _, scheme := range []string{"", "file://"} {
		n := newNode(t)
		n.mkdir("dist")
		for _, arch := range []string{"amd64", "arm64"} {
			if err := os.WriteFile(n.path("dist/skeletonkey-linux-"+arch), []byte(standIn), 0o444); err != nil {
				t.Fatal(err)
			}
		}
		n.job.Runtime.Location = scheme + n.path("dist")
		n.only("sha256sum") // neither curl nor wget nor python3
		n.mustRun()
	}
}

func TestExpiredTicket(t *testing.T) {
	n := newNode(t)
	n.job.Ticket.Expires = time.Now().Add(-time.Hour).Unix()
	code, said := n.run()
	if code != 77 || !strings.Contains(said, "generate the job again") || n.recorded("argv") != "" {
		t.Errorf("exit code %d: %s", code, said)
	}
	n.job.Ticket.Expires = time.Now().Add(-time.Second).Unix() // clocks may differ a little
	n.mustRun()
}

func TestHelpAndVersion(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		for flag, want := range map[string]string{
			"--help": "Usage: job.sh", "-h": "Exit code: 0, 1 or any other of the application's own. Ours are",
			"--version": "skeletonkey 1.2.3\n",
		} {
			if said := n.mustRun(flag); !strings.Contains(said, want) {
				t.Errorf("%s: %s", flag, said)
			}
		}
		if n.recorded("argv") != "" || len(n.left("home")) > 0 {
			t.Error("something was started")
		}
	})
}

func TestUserProxyTravels(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		n.job.UserProxy = "/tmp/x509up_u1000"
		n.parts.UserProxy = []byte("-----BEGIN CERTIFICATE-----\n" + strings.Repeat("YWJj\n", 20_000) + "SKELETONKEY_USER_PROXY\n$(id) `id` \\\n")
		n.mustRun("x")
		if got := n.recorded("proxy"); got != string(n.parts.UserProxy) {
			t.Errorf("%d bytes of %d", len(got), len(n.parts.UserProxy))
		}
		if !strings.Contains(strings.Join(n.argv(), " "), "--user-proxy-fd 5 -- x") {
			t.Errorf("argv %q", n.argv())
		}
		if files := append(n.left("tmp"), n.left("work")...); len(files) > 0 {
			t.Errorf("left behind: %v", files)
		}
	})
}
