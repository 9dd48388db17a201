package job

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: Parse never panics, what it accepts validates, every fault has a line of the file, and
// values are what stands in the file.
func FuzzParse(f *testing.F) {
	for _, name := range []string{"full", "old", "minimal"} {
		data, err := os.ReadFile(filepath.Join("testdata", name+".ini"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("[Application]\nscript = `x`\nscript = y\n[ Environment ] ; c\nP = C:\\\nQ : 1\n"))
	f.Add([]byte("\xef\xbb\xbf[A]\r\n\tk\t=\t'v'\r\n=\n[\n[x] y\n- = 1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Parse("f.ini", data, Defaults{Server: "h:1", Runtime: "/r"})
		if err == nil {
			if err := j.Validate(); err != nil {
				t.Errorf("accepted, but %v", err)
			}
		} else {
			checkLines(t, data, err)
		}
		checkValues(t, data)
	})
}

func checkLines(t *testing.T, data []byte, err error) {
	lines := strings.Count(string(data), "\n") + 1
	es, ok := err.(Errors)
	if !ok || len(es) == 0 {
		t.Fatalf("not Errors: %v", err)
	}
	for i, e := range es {
		if e.Line < 0 || e.Line > lines || (i > 0 && e.Line != 0 && e.Line < es[i-1].Line) {
			t.Errorf("line %d of %d: %v", e.Line, lines, es)
		}
	}
}

// checkValues holds the values that ini.v1 gives against the file: nothing is expanded, joined or cut.
func checkValues(t *testing.T, data []byte) {
	var fs faults
	_, entries := scan(data, &fs)
	lines := strings.Split(string(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))), "\n")
	for _, e := range entries {
		line := strings.TrimSuffix(lines[e.line-1], "\r")
		if want := trim(line[strings.IndexAny(line, "=:")+1:]); e.value != want {
			t.Errorf("line %d: the value is %q, and %q stands there", e.line, e.value, want)
		}
	}
}
