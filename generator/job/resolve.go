package job

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// table answers which Key a line of a job file means.
type table struct {
	keys []Key
}

// place is a spelling of a key: its own or an older one.
type place struct {
	Alias
	key *Key
}

func (t table) places() []place {
	var out []place
	for i := range t.keys {
		k := &t.keys[i]
		out = append(out, place{Alias{k.Section, k.Name}, k})
		for _, a := range k.Also {
			out = append(out, place{a, k})
		}
	}
	return out
}

// sections returns the documented names of the sections, each once.
func (t table) sections() []string {
	var out []string
	for _, p := range t.places() {
		if !slices.Contains(out, p.Section) {
			out = append(out, p.Section)
		}
	}
	return out
}

func (t table) hasSection(name string) bool {
	for _, s := range t.sections() {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// key returns the key of that documented name.
func (t table) key(section, name string) *Key {
	k, _ := t.find(entry{section: section, key: name})
	return k
}

// find returns the key that an entry means and the number in its name.
func (t table) find(e entry) (*Key, int) {
	for _, p := range t.places() {
		if !strings.EqualFold(p.Section, e.section) {
			continue
		}
		if n, ok := p.match(e.key); ok {
			return p.key, n
		}
	}
	return nil, 0
}

func (p place) match(name string) (n int, ok bool) {
	switch p.key.Match {
	case AnyName:
		return 0, true
	case Numbered:
		before, after, _ := strings.Cut(p.Name, "N")
		pattern := regexp.MustCompile(`^(?i:` + before + `)([1-9][0-9]{0,3})(?i:` + after + `)$`)
		m := pattern.FindStringSubmatch(name)
		if m == nil {
			return 0, false
		}
		n, err := strconv.Atoi(m[1])
		return n, err == nil
	}
	return 0, strings.EqualFold(p.Name, name)
}

// unknownSection says so, and which may be meant.
func (t table) unknownSection(name string) string {
	return fmt.Sprintf("unknown section [%s]%s", name, didYouMean("[%s]", nearest(name, t.sections())))
}

// unknownKey says so, and which may be meant: one of that section, which is returned too, else one of
// that very name in another.
func (t table) unknownKey(e entry) (msg string, meant *Key) {
	var names []string
	elsewhere := ""
	for _, p := range t.places() {
		if strings.EqualFold(p.Section, e.section) {
			names = append(names, p.Name)
		} else if _, ok := p.match(e.key); ok && p.key.Match != AnyName && elsewhere == "" {
			elsewhere = fmt.Sprintf("; it belongs in [%s]", p.Section)
		}
	}
	near := nearest(e.key, names)
	msg = fmt.Sprintf("unknown key %q in [%s]", e.key, t.sectionName(e.section))
	if near == "" {
		return msg + elsewhere, nil
	}
	meant, _ = t.find(entry{section: e.section, key: near})
	return msg + didYouMean("%q", near), meant
}

// sectionName returns the documented spelling.
func (t table) sectionName(name string) string {
	for _, s := range t.sections() {
		if strings.EqualFold(s, name) {
			return s
		}
	}
	return name
}

func didYouMean(format, name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean "+format+"?", name)
}
