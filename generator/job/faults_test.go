package job

import (
	"errors"
	"strings"
	"testing"
)

func TestAllFaultsTogether(t *testing.T) {
	text := `[Application]
scirpt = run.sh
arguments = 'open

  # comment
[Directoris]
read = a
[Ticket]
   duration = soon
Duration = 3h
[Server]
export_base = /x
`
	want := `t.ini:2: unknown key "scirpt" in [Application]; did you mean "script"?
t.ini:3: "arguments" in [Application]: at character 1: reached EOF without closing quote ` + "`'`" + `; quote what is not meant for a shell
t.ini:6: unknown section [Directoris]; did you mean [Directories]?
t.ini:9: "duration" in [Ticket]: "soon" is not a duration; write 36h, 90m or seconds
t.ini:10: "Duration" in [Ticket] was given before, as "duration" in line 9
t.ini:12: unknown key "export_base" in [Server]; it belongs in [Directories]
t.ini: key "location" in [Runtime] is missing: where nodes find skeletonkey-linux-ARCH and SHA256SUMS`
	if got := parseError(t, text); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	_, err := Parse("t.ini", []byte(text), Defaults{})
	var one *Error
	if !errors.As(err, &one) || one.Line != 2 || one.File != "t.ini" {
		t.Errorf("first fault %+v", one)
	}
}

func TestFaults(t *testing.T) {
	const dirs = minimal + "[Server]\nlocation = h:1\n[Directories]\n" // 7 lines are before what follows
	for _, c := range []struct{ text, want string }{
		{"", `t.ini: key "script" in [Application] is missing`},
		{"[Application]\nlocation = x\n", `t.ini:1: key "script" in [Application] is missing`},
		{"script = x\nlocation = y\n", `t.ini:1: key "script" stands before the first [section]`},
		{"[Application\nscript = x", `t.ini:1: section "[Application" has no ]`},
		{"[]\n", `t.ini:1: section without a name`},
		{"[Application] script = x\n", `t.ini:1: "script = x" after [Application]`},
		{minimal + "[Environment]\nX = `id`", "t.ini:6: a value cannot begin with ` or with three quotes"},
		{minimal + "[Environment]\nX = \"\"\"", "t.ini:6: a value cannot begin with ` or with three quotes"},
		{minimal + "nonsense\n", `t.ini:5: "nonsense" is neither [section] nor`},
		{minimal + "  more\n", `t.ini:5: "more" has no =; a value cannot go on`},
		{minimal + " = 3\n", `t.ini:5: no key before "="`},
		{minimal + "[Zebra]\n", "t.ini:5: unknown section [Zebra]"},
		{minimal + "[Application]\nx\x00y = 1", "t.ini:6: a control character"},
		{minimal + "[Application]\nx\ry = 1", "t.ini:6: a control character"},
		{minimal + "[Environment]\nX = \xff", "t.ini:6: bytes that are not UTF-8"},
		{"\xff\xfe[\x00A\x00", "t.ini:1: the file is UTF-16"},
		{minimal + "[Environment]\nX Y = 1", `t.ini:6: "X Y" in [Environment]: "X Y" cannot be the name of a variable`},
		{minimal + "[Environment]\nCHIRP_MOUNT = 1", "CHIRP_MOUNT is set by SkeletonKey itself"},
		{minimal + "[Environment]\nX = 1\nX = 2", `t.ini:7: "X" in [Environment] was given before, as "X" in line 6`},
		{minimal + "[Parrot]\nlocation = http://h/", `t.ini:6: "location" in [Parrot] was given before, as "location" in line 4`},
		{dirs + "export_base = /a\nchirp_base = /a", `t.ini:9: "chirp_base" in [Directories] was given before, as "export_base" in line 8`},
		{minimal + "[Directories]\nread = a", `t.ini: key "location" in [Server] is missing, and ~/.chirp names no server`},
		{dirs + "export_base = data", `"data" is not an absolute path of the server's machine`},
		{dirs + "export_base = /a/../b", `.. is refused`},
		{dirs + "read = a/../b", `t.ini:8: "read" in [Directories]: "a/../b": .. is refused`},
		{dirs + "read = a, ./a/", `"./a/" is named twice`},
		{dirs + "read = a/.__acl", "belong to the server"},
		{dirs + "read = a_x, a/x, b/x, b_x", "would both be linked as"},
		{minimal + "[Application]\nsha256 = 00", "is not a SHA-256 in 64 hex digits"},
		{minimal + "[Application]\nsha256 = " + exampleSum, `t.ini:6: "sha256" in [Application] without "location"`},
		{minimal + "[Application]\nlocation = ftp://h/x", `"ftp://h/x" cannot be fetched`},
		{minimal + "[Application]\nlocation = http:///x", "is not a URL with a host"},
		{minimal + "[Application]\nlocation = file://h/x", "write file:///PATH"},
		{minimal + "[Application]\nhttp_proxy = squid:3128/x", "is not a web proxy"},
		{minimal + "[Application]\nuser_proxy = DEFAULT", "DEFAULT names no file here"},
		{minimal + "[Application]\narguments = a;touch X", "`;` is not a valid word; quote what is not meant"},
		{minimal + "[Application]\narguments = a #b", `"#b" would be a comment in a shell`},
		{"[Application]\nscript = ../x", `leads upwards`},
		{"[Application]\nscript = bin/", `is a directory`},
		{"[Runtime]\nlocation = dist", `"dist" is neither a URL nor an absolute path`},
		{minimal + "[Server]\nlocation = http://h:1", "write chirp://HOST:PORT"},
		{minimal + "[Server]\nlocation = h:99999", `no port "99999"`},
		{minimal + "[Server]\nlocation = h/data", "is not HOST:PORT"},
		{minimal + "[Ticket]\nduration = 0", "is not between 1 second and 3650 days"},
		{minimal + "[Ticket]\nduration = 10ms", "is not between 1 second and 3650 days"},
		{minimal + "[CVMFS]\nrepo0 = x", `unknown key "repo0" in [CVMFS]; did you mean "repoN"?`},
		{minimal + "[CVMFS]\nrepo2_key = http://h/k", "t.ini:6: repo2 in [CVMFS] is missing"},
		{minimal + "[CVMFS]\nrepo1 = a/b", `"a/b" is no name of a repository`},
	} {
		if got := parseError(t, c.text); !strings.Contains(got, c.want) {
			t.Errorf("%q:\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"script", "location", "sha256", "arguments", "http_proxy", "user_proxy"}
	for name, want := range map[string]string{
		"scirpt": "script", "SCRIPTS": "script", "locaton": "location", "argument": "arguments", "args": "",
		"httpproxy": "http_proxy", "sha-256": "sha256", "banana": "", "x": "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", name, got, want)
		}
	}
}
