package auth

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// quoted is s in the double quotes of a ticket's file. A quote and a backslash
// are escaped by a backslash; line feeds stand as they are.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// parseRegistered reads a ticket's file: words and quoted strings in any layout.
// Whatever it does not know, or finds torn, is an error: half a ticket must not
// lend anything.
func parseRegistered(text []byte) (r Registered, err error) {
	s := fileScanner{rest: string(text)}
	for {
		key := s.word()
		switch key {
		case "":
			return s.finish(r)
		case "subject":
			r.Subject = s.quoted()
		case "parent":
			r.Parent = s.quoted()
		case "ticket":
			r.PublicPEM = []byte(s.quoted())
		case "expiration":
			seconds, err := strconv.ParseInt(s.quoted(), 10, 64)
			if err != nil {
				s.fail("expiration is not a number")
			}
			r.Expires = time.Unix(seconds, 0)
		case "rights":
			r.Rights = append(r.Rights, TicketRight{s.quoted(), s.quoted()})
		default:
			s.fail(fmt.Sprintf("unknown word %.40q", key))
		}
		if s.err != nil {
			return Registered{}, s.err
		}
	}
}

type fileScanner struct {
	rest string
	err  error
}

func (s *fileScanner) fail(reason string) {
	if s.err == nil {
		s.err = fmt.Errorf("damaged ticket: %s", reason)
	}
}

func (s *fileScanner) finish(r Registered) (Registered, error) {
	if r.Subject == "" || len(r.PublicPEM) == 0 || r.Expires.IsZero() {
		s.fail("subject, ticket or expiration is missing")
	}
	if s.err != nil {
		return Registered{}, s.err
	}
	return r, nil
}

func (s *fileScanner) word() string {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	i := strings.IndexAny(s.rest, " \t\r\n\"")
	if i < 0 {
		i = len(s.rest)
	}
	if i == 0 && s.rest != "" {
		s.fail("a quoted string stands where a word is due")
		return "?"
	}
	word := s.rest[:i]
	s.rest = s.rest[i:]
	return word
}

func (s *fileScanner) quoted() string {
	s.rest = strings.TrimLeft(s.rest, " \t\r\n")
	if !strings.HasPrefix(s.rest, `"`) {
		s.fail("a quoted string is missing")
		return ""
	}
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		case c == '"':
			s.rest = s.rest[i+1:]
			return b.String()
		default:
			b.WriteByte(c)
		}
	}
	s.fail("a quoted string has no end")
	return ""
}
