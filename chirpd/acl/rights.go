package acl

import (
	"fmt"
	"strings"
)

// Rights is a set of rights, with the set that Reserve hands out. The zero value is no
// right at all.
type Rights uint16

// The rights. Write contains Put.
const (
	Read Rights = 1 << iota
	List
	Delete
	Put
	Admin
	Execute
	Reserve
	write

	Write = write | Put
)

// reserveShift is where the rights stand that go with Reserve.
const reserveShift = 8

const ownBits Rights = 1<<reserveShift - 1

// Full is every right in a directory: rwldpax. Who may write need not reserve.
const Full = Read | Write | List | Delete | Admin | Execute

// reserveDefault is what v means without brackets.
const reserveDefault = Read | Write | List | Delete | Admin

// letters are the rights in the order in which they are written.
var letters = []struct {
	letter byte
	right  Rights
	adds   Rights // what the letter sets
}{
	{'r', Read, Read}, {'w', write, Write}, {'l', List, List}, {'d', Delete, Delete},
	{'p', Put, Put}, {'a', Admin, Admin}, {'x', Execute, Execute},
}

// Reserving gives Reserve with the rights that the maker of a directory gets in it.
func Reserving(inner Rights) Rights {
	return normal(Reserve | inner&ownBits<<reserveShift)
}

// Has says whether every right of want is there. The rights that go with Reserve are not
// compared.
func (r Rights) Has(want Rights) bool { return r&want&ownBits == want&ownBits }

// Reserved is what the maker of a directory gets in it by Reserve: none without it.
// Where Reserve itself is among them, it hands out the same rights again.
func (r Rights) Reserved() Rights {
	if r&Reserve == 0 {
		return 0
	}
	inner := r >> reserveShift
	if inner&Reserve != 0 {
		inner |= r &^ ownBits
	}
	return normal(inner)
}

// And is what is left of the rights under a mask. It never has a right that either lacks.
func (r Rights) And(mask Rights) Rights { return normal(r & mask) }

// normal takes away a Reserve that hands nothing out, which would be written like one
// that hands out the default, and rights handed out without Reserve.
func normal(r Rights) Rights {
	if r&Reserve == 0 || r&^ownBits == 0 {
		return r & ownBits &^ Reserve
	}
	return r
}

// String writes the rights as they stand in a list: "n" for none.
func (r Rights) String() string { return string(r.AppendTo(nil)) }

// AppendTo appends what String gives.
func (r Rights) AppendTo(b []byte) []byte {
	r = normal(r)
	if r == 0 {
		return append(b, 'n')
	}
	b = r.appendLetters(b)
	if r&Reserve != 0 {
		inner := r >> reserveShift
		b = append(b, "v("...)
		b = inner.appendLetters(b)
		if inner&Reserve != 0 {
			b = append(b, 'v')
		}
		b = append(b, ')')
	}
	return b
}

func (r Rights) appendLetters(b []byte) []byte {
	for _, l := range letters {
		if r&l.right != 0 {
			b = append(b, l.letter)
		}
	}
	return b
}

// ParseRights reads letters as in a list, in any order. Anything else, the empty string
// too, is an error and no rights.
func ParseRights(s string) (Rights, error) {
	switch s {
	case "":
		return 0, fmt.Errorf("rights are missing")
	case "n", "-", ".":
		return 0, nil
	}
	var r Rights
	for s != "" {
		if s[0] != 'v' {
			add, err := letterRight(s[0])
			if err != nil {
				return 0, err
			}
			r |= add
			s = s[1:]
			continue
		}
		inner, rest, err := parseReserve(s[1:])
		if err != nil {
			return 0, err
		}
		r |= Reserving(inner)
		s = rest
	}
	return r, nil
}

// parseReserve reads what follows a v: nothing of its own, or letters in brackets.
func parseReserve(s string) (inner Rights, rest string, err error) {
	if !strings.HasPrefix(s, "(") {
		return reserveDefault, s, nil
	}
	text, rest, closed := strings.Cut(s[1:], ")")
	if !closed {
		return 0, "", fmt.Errorf("rights %q: the bracket is not closed", "v"+s)
	}
	if text == "" {
		return reserveDefault, rest, nil
	}
	for i := range len(text) {
		if text[i] == 'v' {
			inner |= Reserve
			continue
		}
		add, err := letterRight(text[i])
		if err != nil {
			return 0, "", err
		}
		inner |= add
	}
	return inner, rest, nil
}

func letterRight(c byte) (Rights, error) {
	for _, l := range letters {
		if l.letter == c {
			return l.adds, nil
		}
	}
	return 0, fmt.Errorf("unknown right %q; there are r w l d a x p v(...) and n", c)
}
