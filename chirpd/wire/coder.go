package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// coder moves the words of one request, in one of two directions: it appends
// them to buf, or takes them from rest. Each request names its words once, in
// order, and that serves both ends. The first error sticks.
type coder struct {
	decoding bool
	buf      []byte // encoding: the line so far
	rest     []byte // decoding: what is left of the line
	err      error
}

func (c *coder) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// next takes a word that must be there.
func (c *coder) next(what string) []byte {
	word, rest := cutWord(c.rest)
	c.rest = rest
	if len(word) == 0 {
		c.fail("%s is missing", what)
	}
	return word
}

func (c *coder) num(what string, v *int64) {
	if !c.decoding {
		c.buf = strconv.AppendInt(append(c.buf, ' '), *v, 10)
		return
	}
	word := c.next(what)
	n, ok := parseInt(word)
	if !ok {
		c.fail("%s is %.40q, not a number", what, word)
	}
	*v = n
}

// size is a number that must not be negative.
func (c *coder) size(what string, v *int64) {
	c.num(what, v)
	if *v < 0 {
		c.fail("%s is negative: %d", what, *v)
	}
}

// path is a percent-encoded word.
func (c *coder) path(what string, v *string) {
	if !c.decoding {
		if *v == "" {
			c.fail("%s is empty", what)
		}
		c.buf = AppendPath(append(c.buf, ' '), *v)
	} else {
		*v = DecodePath(c.next(what))
	}
	if bytes.IndexByte([]byte(*v), 0) >= 0 {
		c.fail("%s %q holds a NUL byte", what, *v)
	}
}

// word is sent as it is, so it may hold neither blanks nor control bytes.
func (c *coder) word(what string, v *string) {
	if c.decoding {
		*v = string(c.next(what))
		return
	}
	if err := checkWord(*v); err != nil {
		c.fail("%s %q: %w", what, *v, err)
	}
	c.buf = append(append(c.buf, ' '), *v...)
}

// lastWord is a word that may be missing at the line's end.
func (c *coder) lastWord(what string, v *string) {
	if c.decoding {
		word, rest := cutWord(c.rest)
		*v, c.rest = string(word), rest
	} else if *v != "" {
		c.word(what, v)
	}
}

func (c *coder) flags(v *OpenFlags) {
	s := v.String()
	c.word("flags", &s)
	if c.decoding && c.err == nil {
		*v, c.err = ParseOpenFlags(s)
	}
}

var (
	errEmptyWord   = errors.New("is empty")
	errBlankInWord = errors.New("holds a blank or a control byte, which the protocol cannot carry")
)

func checkWord(s string) error {
	if s == "" {
		return errEmptyWord
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] == 0x7f {
			return errBlankInWord
		}
	}
	return nil
}
