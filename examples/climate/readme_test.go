package climate

import (
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/examples/internal/readmetest"
)

func TestReadme(t *testing.T) {
	p := readmetest.New(t)
	p.Run("Step by step")
	p.Run("On its own")
	for _, name := range []string{Table, Plot} {
		if read(t, filepath.Join(p.Home, "climate/data/results", name)) != read(t, filepath.Join("sample", name)) {
			t.Errorf("%s is not sample/%[1]s", name)
		}
	}
	readme := read(t, "README.md")
	records := read(t, filepath.Join(p.Home, "climate/data/records/made-land.csv"))
	if example := indented(readme, "What goes in"); example == "" || !strings.HasPrefix(records, example) {
		t.Errorf("the records do not begin as README.md says:\n%s", example)
	}
	rest := read(t, "sample/"+Table)
	for line := range strings.Lines(indented(readme, "What comes out")) {
		if line == "...\n" {
			continue
		}
		_, after, ok := strings.Cut("\n"+rest, "\n"+strings.Join(strings.Fields(line), "\t")+"\n")
		if !ok {
			t.Errorf("not in %s, or not there: %s", Table, line)
		}
		rest = after
	}
	if strings.Trim(rest, "\n") != "" {
		t.Errorf("README.md does not show the end of %s: %q", Table, rest)
	}
}

// indented returns the indented lines of a section.
func indented(readme, section string) (text string) {
	_, body, _ := strings.Cut(readme, "\n## "+section+"\n")
	body, _, _ = strings.Cut(body, "\n## ")
	for line := range strings.Lines(body) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			text += code
		}
	}
	return text
}
