package acl

import "strings"

const hostMethod = "hostname:"

// Match says whether a subject is the one that a pattern names, or one of those it names
// by "*". Patterns and subjects are compared byte for byte and whole; names of the method
// hostname match in either case of the ASCII letters.
func Match(pattern, subject string) bool {
	fold := len(subject) // from where on the case does not count
	if strings.HasPrefix(subject, hostMethod) {
		fold = len(hostMethod)
	}
	p, s := 0, 0
	// Where to try again: the "*" seen last takes one byte more.
	star, mark := -1, 0
	for s < len(subject) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, s
			p++
		case p < len(pattern) && same(pattern[p], subject[s], s >= fold):
			p++
			s++
		case star >= 0:
			mark++
			p, s = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

func same(a, b byte, fold bool) bool {
	return a == b || fold && lower(a) == lower(b)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// CleanSubject writes a subject as lists do: blanks and control characters become "_".
func CleanSubject(subject string) string {
	clean := []byte(subject)
	for i, c := range clean {
		if c <= ' ' || c == 0x7f {
			clean[i] = '_'
		}
	}
	return string(clean)
}
