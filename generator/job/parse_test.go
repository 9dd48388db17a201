package job

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const minimal = "[Application]\nscript = run.sh\n[Runtime]\nlocation = http://h/dist\n"

func mustParse(t *testing.T, text string) *Job {
	t.Helper()
	j, err := Parse("t.ini", []byte(text), Defaults{Server: "d:9094"})
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return j
}

func parseError(t *testing.T, text string) string {
	t.Helper()
	_, err := Parse("t.ini", []byte(text), Defaults{})
	var es Errors
	if !errors.As(err, &es) {
		t.Fatalf("Parse of %q: %v, want Errors", text, err)
	}
	return err.Error()
}

func TestLoadSamples(t *testing.T) {
	for _, name := range []string{"full", "old", "minimal"} {
		t.Run(name, func(t *testing.T) {
			j, err := Load(filepath.Join("testdata", name+".ini"), Defaults{
				Server: "laptop.example.org:9101", ExportBase: "/srv/export", UserProxy: "/tmp/x509up_u1000"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := j.encode()
			if err != nil {
				t.Fatal(err)
			}
			golden(t, filepath.Join("testdata", name+".json"), got)
		})
	}
}

// golden compares with a file; with SKELETONKEY_UPDATE=1 it writes the file instead.
func golden(t *testing.T, file string, got []byte) {
	t.Helper()
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
}

// Case 43: values are what stands there.
func TestValuesAsWritten(t *testing.T) {
	for written, want := range map[string]string{
		`https://h/a#/b;c`:    `https://h/a#/b;c`,
		`C:\`:                 `C:\`,
		`%Y`:                  `%Y`,
		`a%20b`:               `a%20b`,
		`%(none)s`:            `%(none)s`,
		`$HOME ~ * ${x}`:      `$HOME ~ * ${x}`,
		`a = b : c`:           `a = b : c`,
		"'`id` and `id`'":     "`id` and `id`",
		"x `id`":              "x `id`",
		`"two words"`:         `two words`,
		`' kept '`:            ` kept `,
		`"a" and "b"`:         `"a" and "b"`,
		`"`:                   `"`,
		`"a'`:                 `"a'`,
		`it's`:                `it's`,
		``:                    ``,
		`""`:                  ``,
		`"say ""`:             `"say ""`,
		"\ttabs\tinside\t":    "tabs\tinside",
		`- dash # and ; kept`: `- dash # and ; kept`,
	} {
		j := mustParse(t, minimal+"[Environment]\nP = "+written+"\nQ = 1\n")
		if d := cmp.Diff(map[string]string{"P": want, "Q": "1"}, j.Environment); d != "" {
			t.Errorf("%q (-want +got):\n%s", written, d)
		}
	}
}

func TestSpellings(t *testing.T) {
	for name, text := range map[string]string{
		"BOM":        "\xef\xbb\xbf" + minimal,
		"CRLF":       strings.ReplaceAll(minimal, "\n", "\r\n"),
		"no LF":      strings.TrimSuffix(minimal, "\n"),
		"case":       "[APPLICATION]\nScript=run.sh\n[runtime]\nLOCATION=http://h/dist\n",
		"colon":      "[Application]\nscript: run.sh\n[Runtime]\nlocation : http://h/dist\n",
		"indented":   "  [ Application ]  # one\n\tscript =run.sh\n [Runtime];x\n location= http://h/dist/ \n",
		"quotes":     "[Application]\nscript = \"run.sh\"\nlocation = \"\"\n[Runtime]\nlocation = 'http://h/dist'\n",
		"old name":   "[Application]\nscript = run.sh\n[Parrot]\nlocation = http://h/dist\n",
		"open again": "[Application]\n[Runtime]\nlocation = http://h/dist\n[Application]\nscript = run.sh\n",
		"blanks":     minimal + "[Directories]\nread =\nwrite = ,\n[CVMFS]\nrepo1 =\nrepo1_key =\n",
	} {
		t.Run(name, func(t *testing.T) {
			j := mustParse(t, text)
			want := &Job{Version: 1, Name: "t", Application: Application{Script: "run.sh"},
				Runtime: Runtime{Location: "http://h/dist"}, Ticket: Ticket{Seconds: 86400}}
			if d := cmp.Diff(want, j); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestEnvironmentKeepsCase(t *testing.T) {
	j := mustParse(t, minimal+"[environment]\nPath = 1\nPATH = 2\n")
	if j.Environment["Path"] != "1" || j.Environment["PATH"] != "2" {
		t.Errorf("environment %v", j.Environment)
	}
}

func TestDefaultsFillIn(t *testing.T) {
	text := "[Application]\nscript = r\n[Directories]\nread = a, /srv/x/b\n"
	j, err := Parse("dir/my job.v1.ini", []byte(text), Defaults{Server: "h:1", ExportBase: "/srv/x", Runtime: "http://h/d"})
	if err != nil {
		t.Fatal(err)
	}
	if j.Name != "my_job.v1" || j.Server != "h:1" || j.Runtime.Location != "http://h/d" || j.Dirs[1].Path != "/b" {
		t.Errorf("got %+v", j)
	}
}

func TestLoadMissing(t *testing.T) {
	_, err := Load(filepath.Join(t.TempDir(), "no.ini"), Defaults{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	big := filepath.Join(t.TempDir(), "big.ini")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big, Defaults{}); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("big file: %v", err)
	}
}
