package readmetest

import (
	"fmt"
	"regexp"
	"strings"
)

// kind is what is done with a block of the README.
type kind string

const (
	run   kind = "run"
	serve kind = "serve"
	says  kind = "says"
)

// step is an indented block of a README.
type step struct {
	kind kind
	line int // of the README, where the block begins
	text string
}

var saysAtEnd = regexp.MustCompile(`\bsays( last)?\s*$`)

// steps takes a section of a README apart, which goes up to the next heading of its rank.
func steps(readme, section string) ([]step, error) {
	before, body, ok := strings.Cut(readme, "\n## "+section+"\n")
	if !ok {
		return nil, fmt.Errorf("no section %q", section)
	}
	body, _, _ = strings.Cut(body, "\n## ")
	number := strings.Count(before, "\n") + 2
	var list []step
	var prose strings.Builder
	inside := false
	for line := range strings.Lines(body) {
		number++
		code, indented := strings.CutPrefix(line, "    ")
		switch {
		case indented && inside:
			list[len(list)-1].text += code
		case indented:
			list = append(list, step{kindOf(prose.String(), code), number, code})
			prose.Reset()
		default:
			prose.WriteString(line)
		}
		inside = indented
	}
	return list, nil
}

func kindOf(prose, code string) kind {
	switch {
	case saysAtEnd.MatchString(prose):
		return says
	case strings.HasPrefix(code, "skeletonkey serve "):
		return serve
	}
	return run
}

// endsWith tells whether the last lines of out are those of text.
func endsWith(out, text string) bool {
	return out == text || strings.HasSuffix(out, "\n"+text)
}
