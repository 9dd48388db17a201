package job

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// SplitArguments splits s into the words that a POSIX shell would make of it, with quotes and
// backslashes taken away and nothing expanded: substitutions stay as they are written. What a shell
// would not take as part of a word is an error.
func SplitArguments(s string) ([]string, error) {
	if strings.ContainsAny(s, "\x00\r") {
		return nil, errors.New("a NUL or carriage return cannot stand in an argument")
	}
	var args []string
	end := 0      // of the last word
	between := "" // what the parser passed over, blanks and all
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	for w, err := range parser.WordsSeq(strings.NewReader(s)) {
		if err != nil {
			return nil, argumentError(err)
		}
		between += s[end:w.Pos().Offset()]
		args = append(args, literal(s, w))
		end = int(w.End().Offset())
	}
	// The parser passes over a comment, as a shell does; here it would be an argument lost.
	if lost := strings.TrimSpace(between + s[end:]); lost != "" {
		return nil, fmt.Errorf("%q would be a comment in a shell; quote the #", lost)
	}
	return args, nil
}

// argumentError says in one line what the shell's parser found, and the way out.
func argumentError(err error) error {
	var parse syntax.ParseError
	if errors.As(err, &parse) {
		return fmt.Errorf("at character %d: %s; quote what is not meant for a shell", parse.Pos.Col(), parse.Text)
	}
	return err
}

// literal returns the word as the application gets it.
func literal(src string, w *syntax.Word) string {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(p.Value, ""))
		case *syntax.SglQuoted:
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					b.WriteString(unescape(lit.Value, "$`\"\\"))
				} else {
					b.WriteString(source(src, inner))
				}
			}
		default:
			b.WriteString(source(src, part))
		}
	}
	return b.String()
}

// source returns the text of a node as it was written.
func source(src string, n syntax.Node) string {
	return src[n.Pos().Offset():n.End().Offset()]
}

// unescape takes away the backslashes that a shell takes away: before any character, or only before
// those of special. One at the very end stays.
func unescape(s, special string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && (special == "" || strings.IndexByte(special, s[i+1]) >= 0) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
