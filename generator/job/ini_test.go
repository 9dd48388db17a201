package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gopkg.in/ini.v1"
)

// second reads a job file with gopkg.in/ini.v1, its options set to our rules; ok is false where the
// rules differ: quotes of its own, a key named -, a ] in the comment of a heading, blanks beyond ASCII.
func second(data []byte) (values map[string]string, ok bool) {
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		_, value, _ := strings.Cut(strings.ReplaceAll(line, ":", "="), "=")
		if strings.HasPrefix(line, `"`) || strings.HasPrefix(line, "`") || strings.HasPrefix(line, "-") ||
			(strings.HasPrefix(line, "[") && strings.Count(line, "]") > 1) || strings.ContainsFunc(line, notASCII) ||
			strings.HasPrefix(trim(value), "`") || strings.HasPrefix(trim(value), `"""`) {
			return nil, false
		}
	}
	f, err := ini.LoadSources(ini.LoadOptions{
		IgnoreInlineComment: true, IgnoreContinuation: true, PreserveSurroundedQuote: true, KeyValueDelimiters: "=:",
	}, data)
	if err != nil {
		return nil, false
	}
	values = map[string]string{}
	for _, section := range f.Sections() {
		for _, key := range section.Keys() {
			values[trim(section.Name())+"\x00"+key.Name()] = key.Value()
		}
	}
	return values, true
}

func notASCII(r rune) bool { return r > 0x7f }

// FuzzParse: Parse never panics, what it accepts validates, every fault has a line of the file, and
// the scan agrees with an independent reader where the rules are the same.
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
		compareWithSecond(t, data)
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

func compareWithSecond(t *testing.T, data []byte) {
	var fs faults
	headings, entries := scan(data, &fs)
	if len(fs.list) > 0 || len(headings) == 0 {
		return
	}
	want, ok := second(data)
	if !ok {
		return
	}
	got := map[string]string{}
	for _, e := range entries {
		got[e.section+"\x00"+e.key] = e.value
	}
	for k, v := range got {
		if want[k] != v {
			t.Errorf("%q: ours %q, ini.v1's %q", k, v, want[k])
		}
	}
}
