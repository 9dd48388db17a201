package acl

import (
	"fmt"
	"strings"
)

// Entry gives rights to the subjects that match its pattern.
type Entry struct {
	Subject string
	Rights  Rights
}

// ACL is a list of entries, in the order of the text. nil grants nothing.
type ACL []Entry

// SyntaxError says which line of a list is wrong, counted from 1, and how.
type SyntaxError struct {
	Line   int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("ACL line %d: %s; nothing is granted until it is mended", e.Line, e.Reason)
}

// Builtin is the list of a fresh export: everything for its owner, a local user.
func Builtin(owner string) ACL {
	return ACL{{Subject: CleanSubject("unix:" + owner), Rights: Full}}
}

// Parse reads the text of a list. Whatever is wrong with it, it returns no list and a
// *SyntaxError.
func Parse(text []byte) (ACL, error) {
	var list ACL
	rest := string(text)
	for n := 1; rest != ""; n++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.Trim(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" {
			continue
		}
		e, err := parseEntry(line)
		if err != nil {
			return nil, &SyntaxError{Line: n, Reason: err.Error()}
		}
		list = append(list, e)
	}
	return list, nil
}

func parseEntry(line string) (Entry, error) {
	subject, rights, found := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	if !found {
		return Entry{}, fmt.Errorf("%q is not a subject and its rights", line)
	}
	if CleanSubject(subject) != subject {
		return Entry{}, fmt.Errorf("subject %q has control characters", subject)
	}
	r, err := ParseRights(strings.TrimLeft(rights, " "))
	return Entry{Subject: subject, Rights: r}, err
}

// String is the text of the list, which Parse reads back.
func (l ACL) String() string { return string(l.AppendTo(nil)) }

// AppendTo appends the text of the list. An entry for nobody, which has no text, is left
// out.
func (l ACL) AppendTo(b []byte) []byte {
	for _, e := range l {
		if e.Subject == "" {
			continue
		}
		b = append(b, CleanSubject(e.Subject)...)
		b = append(b, ' ')
		b = e.Rights.AppendTo(b)
		b = append(b, '\n')
	}
	return b
}

// For is what a subject may do: the rights of all entries that match it together.
func (l ACL) For(subject string) Rights { return l.ForMember(subject, nil) }

// groupPrefix begins the entries that name a group instead of a subject.
const groupPrefix = "group:"

// ForMember is For with groups: an entry "group:NAME" counts for those of whom member says
// that they are in NAME. It is asked only where the entry would add a right. nil: nobody
// is in any group.
func (l ACL) ForMember(subject string, member func(group string) bool) Rights {
	var r Rights
	for _, e := range l {
		name, group := strings.CutPrefix(e.Subject, groupPrefix)
		switch {
		case Match(e.Subject, subject):
			r |= normal(e.Rights)
		case group && member != nil && normal(e.Rights)&^r != 0 && member(name):
			r |= normal(e.Rights)
		}
	}
	return r
}

// Set gives the list with the rights of exactly this subject, as it is written, replaced;
// with no rights, its entry removed. Other entries stay, those that match it too.
func (l ACL) Set(subject string, r Rights) ACL {
	subject, r = CleanSubject(subject), normal(r)
	set := make(ACL, 0, len(l)+1)
	done := r == 0
	for _, e := range l {
		if e.Subject == subject {
			if done {
				continue
			}
			e.Rights, done = r, true
		}
		set = append(set, e)
	}
	if !done {
		set = append(set, Entry{Subject: subject, Rights: r})
	}
	return set
}

// Reset gives the list in which only this subject has rights.
func Reset(subject string, r Rights) ACL { return ACL(nil).Set(subject, r) }
