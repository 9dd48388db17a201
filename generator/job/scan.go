package job

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"gopkg.in/ini.v1"
)

// iniOptions are ini.v1's settings for the rules of the package documentation.
var iniOptions = ini.LoadOptions{
	IgnoreInlineComment:     true,
	IgnoreContinuation:      true,
	PreserveSurroundedQuote: true,
	KeyValueDelimiters:      "=:",
}

// entry is one `key = value` line.
type entry struct {
	section string // as written
	key     string // as written
	value   string // without the blanks around it, otherwise as written
	line    int
}

// heading is one `[section]` line.
type heading struct {
	name string
	line int
}

// scan takes a job file apart into its sections and entries, by the rules of the package documentation.
// Faulty lines are reported and left out; entries of no section are reported once. ini.v1 reads the lines,
// one at a time: of a whole file it would tell no line numbers and only the first fault, and of two equal
// keys keep the last in silence.
func scan(data []byte, f *faults) (headings []heading, entries []entry) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		f.add(1, "the file is UTF-16; save it as UTF-8")
		return nil, nil
	}
	s := scanner{faults: f}
	n := 0
	for raw := range bytes.Lines(data) {
		n++
		text := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
		if why := badText(text); why != "" {
			f.add(n, "%s", why)
			continue
		}
		s.line(text, n)
	}
	return s.headings, s.entries
}

type scanner struct {
	faults   *faults
	headings []heading
	entries  []entry
	section  string
	orphaned bool // an entry before the first section was reported
	broken   bool // the last heading was unreadable: its entries are passed over
}

func (s *scanner) line(text string, n int) {
	indented := strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t")
	text = trim(text)
	switch {
	case text == "" || text[0] == '#' || text[0] == ';':
	case text[0] == '[':
		s.heading(text, n)
	default:
		s.entry(text, n, indented)
	}
}

func (s *scanner) heading(text string, n int) {
	name, rest, found := strings.Cut(text[1:], "]")
	name, rest = trim(name), trim(rest)
	s.broken = true
	read, _, _, err := readLine("[" + name + "]")
	switch {
	case !found:
		s.faults.add(n, "section %q has no ]", text)
	case name == "":
		s.faults.add(n, "section without a name")
	case rest != "" && rest[0] != '#' && rest[0] != ';':
		s.faults.add(n, "%q after [%s]; put it on a line of its own", rest, name)
	case err != nil:
		s.faults.add(n, "section %q: %v", name, err)
	default:
		s.section, s.broken = cmp.Or(read, name), false // ini.v1 has a nameless section of its own, which is DEFAULT
		s.headings = append(s.headings, heading{s.section, n})
	}
}

func (s *scanner) entry(text string, n int, indented bool) {
	i := strings.IndexAny(text, "=:")
	switch {
	case s.broken:
	case i < 0 && indented && len(s.entries) > 0:
		s.faults.add(n, "%q has no =; a value cannot go on in the next line", text)
	case i < 0:
		s.faults.add(n, "%q is neither [section] nor key = value nor a # comment", text)
	case trim(text[:i]) == "":
		s.faults.add(n, "no key before %q", text[i:i+1])
	case s.section == "":
		if !s.orphaned {
			s.faults.add(n, "key %q stands before the first [section]", trim(text[:i]))
		}
		s.orphaned = true
	default:
		s.keyValue(text, trim(text[i+1:]), n)
	}
}

// keyValue takes an entry from a line whose value, as it stands there, is written. ini.v1 has quotes of its
// own, which would be taken off.
func (s *scanner) keyValue(text, written string, n int) {
	if strings.HasPrefix(written, "`") || strings.HasPrefix(written, `"""`) {
		s.faults.add(n, "a value cannot begin with ` or with three quotes; put it in quotes (\"...\" or '...')")
		return
	}
	_, key, value, err := readLine(text)
	if err != nil {
		s.faults.add(n, "%q: %v", text, err)
		return
	}
	s.entries = append(s.entries, entry{s.section, key, value, n})
}

// readLine lets ini.v1 read a line that is a heading or an entry.
func readLine(text string) (section, key, value string, err error) {
	f, err := ini.LoadSources(iniOptions, []byte(text))
	if err != nil {
		return "", "", "", err
	}
	last := f.Sections()[len(f.Sections())-1]
	if last.Name() != ini.DefaultSection {
		section = trim(last.Name())
	}
	for _, k := range last.Keys() {
		key, value = k.Name(), k.Value()
	}
	return section, key, value, nil
}

// trim takes the blanks from both ends.
func trim(s string) string { return strings.Trim(s, " \t") }

// badText says why a line, or a value, cannot be used anywhere; empty when it can.
func badText(s string) string {
	if !utf8.ValidString(s) {
		return "bytes that are not UTF-8"
	}
	for _, r := range s {
		if r < ' ' && r != '\t' || r == 0x7f {
			return "a control character"
		}
	}
	return ""
}

// unquote applies the rule of quotes to a whole value.
func unquote(s string) string {
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && strings.IndexByte(s[1:], s[0]) == len(s)-2 {
		return s[1 : len(s)-1]
	}
	return s
}

// splitList splits a comma list; commas inside a quoted item are kept, items that are blank left out.
func splitList(s string) []string {
	var items []string
	for s != "" {
		var item string
		item, s = cutItem(trim(s))
		if item != "" {
			items = append(items, item)
		}
	}
	return items
}

// cutItem takes the first item off a comma list that does not begin with a blank.
func cutItem(s string) (item, rest string) {
	if s != "" && (s[0] == '"' || s[0] == '\'') {
		if end := strings.IndexByte(s[1:], s[0]); end >= 0 {
			after := trim(s[end+2:])
			if after == "" || after[0] == ',' {
				return s[1 : end+1], strings.TrimPrefix(after, ",")
			}
		}
	}
	item, rest, _ = strings.Cut(s, ",")
	return trim(item), rest
}
