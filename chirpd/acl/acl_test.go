package acl

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     ACL
	}{
		{"empty", "", nil},
		{"blank lines", "\n \n\r\n\t\n", nil},
		{"plain", "unix:bob rl\nhostname:*.a.b rwlda\n",
			ACL{{"unix:bob", Read | List}, {"hostname:*.a.b", Read | Write | List | Delete | Admin}}},
		{"no line feed at the end", "unix:bob rl", ACL{{"unix:bob", Read | List}}},
		{"carriage returns", "unix:bob rl\r\nunix:eve r\r\n", ACL{{"unix:bob", Read | List}, {"unix:eve", Read}}},
		{"blanks", "  unix:bob \t  rl  \n", ACL{{"unix:bob", Read | List}}},
		{"none", "unix:bob n\n", ACL{{"unix:bob", 0}}},
		{"bytes above ASCII", "unix:b\xff r\n", ACL{{"unix:b\xff", Read}}},
		{"reserve", "unix:bob lv(rwl)\n", ACL{{"unix:bob", List | Reserving(Read|Write|List)}}},
	} {
		got, err := Parse([]byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
		back, err := Parse(got.AppendTo(nil))
		if d := cmp.Diff(got, back); d != "" || err != nil {
			t.Errorf("%s does not come back: %v %s", c.name, err, d)
		}
	}
}

func TestParseRefusesWhole(t *testing.T) {
	good := "unix:root rwldax\n\nunix:bob rl\n"
	for _, c := range []struct {
		name, in string
		line     int
	}{
		{"torn subject", good + "unix:e", 4},
		{"subject only", good + "unix:eve \n", 4},
		{"unknown right", good + "unix:eve rz\n", 4},
		{"three words", "unix:eve r l\n" + good, 1},
		{"open bracket", good + "unix:eve v(rw", 4},
		{"zeros of a torn block", good + strings.Repeat("\x00", 20), 4},
		{"control character", good + "unix:\x01eve r\n", 4},
		{"carriage return within", good + "unix:eve\rroot r\n", 4},
	} {
		got, err := Parse([]byte(c.in))
		var se *SyntaxError
		if got != nil || !errors.As(err, &se) || se.Line != c.line {
			t.Errorf("%s: %v, %v; want nothing and an error in line %d", c.name, got, err, c.line)
		}
		if got.For("unix:root") != 0 {
			t.Errorf("%s: a list that does not parse grants rights", c.name)
		}
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"unix:bob", "unix:bob", true},
		{"unix:bob", "unix:bobby", false},
		{"unix:bobby", "unix:bob", false},
		{"unix:bob", "unix:Bob", false},
		{"unix:*", "unix:bob", true},
		{"unix:*", "unix:", true},
		{"unix:*", "unixx:bob", false},
		{"*", "ticket:00ff", true},
		{"", "unix:bob", false},
		{"", "", true},
		{"**", "x", true},
		{"hostname:*.trusted.example", "hostname:n1.trusted.example", true},
		{"hostname:*.trusted.example", "hostname:eviltrusted.example", false},
		{"hostname:*.trusted.example", "hostname:n1.trusted.example.evil", false},
		{"hostname:*.trusted.example", "hostname:trusted.example", false},
		{"hostname:*.Trusted.example", "hostname:N1.tRUSTED.example", true},
		{"HOSTNAME:*", "hostname:a", false},
		{"address:10.0.*", "address:10.0.3.4", true},
		{"address:10.0.*", "address:10.01.3.4", false},
		{"*a*b", "xaybzb", true},
		{"*a*b", "xaybz", false},
		{"a*a", "a", false},
	} {
		if got := Match(c.pattern, c.subject); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.subject, got)
		}
	}
}

func TestForIsTheUnion(t *testing.T) {
	list, err := Parse([]byte("unix:* l\nunix:bob r\nunix:bobby rwlda\nhostname:* x\nunix:bob v(r)\n"))
	if err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]string{
		"unix:bob": "rlv(r)", "unix:eve": "l", "hostname:a.b": "x", "address:1.2.3.4": "n",
	} {
		if got := list.For(subject).String(); got != want {
			t.Errorf("%s may %s, want %s", subject, got, want)
		}
	}
	if ACL(nil).For("unix:root") != 0 {
		t.Error("no list grants rights")
	}
}

func TestSet(t *testing.T) {
	list, err := Parse([]byte("unix:* l\nunix:bob r\nunix:bobby rwl\nunix:bob w\n"))
	if err != nil {
		t.Fatal(err)
	}
	before := list.String()
	for _, c := range []struct {
		subject string
		rights  Rights
		want    string
	}{
		{"unix:bob", Read | List, "unix:* l\nunix:bob rl\nunix:bobby rwlp\n"},
		{"unix:bob", 0, "unix:* l\nunix:bobby rwlp\n"},
		{"unix:eve", Read, before + "unix:eve r\n"},
		{"unix:eve", 0, before},
		{"unix:*", 0, "unix:bob r\nunix:bobby rwlp\nunix:bob wp\n"},
		{"globus:/O=A B/CN=C", Read, before + "globus:/O=A_B/CN=C r\n"},
		{"unix:x\nunix:eve rwlda\nunix:y", Read, before + "unix:x_unix:eve_rwlda_unix:y r\n"},
	} {
		if got := list.Set(c.subject, c.rights).String(); got != c.want {
			t.Errorf("set %q %v:\n%swant:\n%s", c.subject, c.rights, got, c.want)
		}
		if list.String() != before {
			t.Fatal("Set changed a list that others may hold")
		}
	}
	if got := Reset("unix:a b", Read).String(); got != "unix:a_b r\n" {
		t.Errorf("reset: %q", got)
	}
	if got := (ACL{{"", Full}}).String(); got != "" {
		t.Errorf("an entry for nobody is written as %q", got)
	}
}

func TestBuiltin(t *testing.T) {
	list := Builtin("bob")
	if got := list.For("unix:bob"); got != Full {
		t.Errorf("the owner may %v", got)
	}
	for _, other := range []string{"unix:bobby", "unix:root", "hostname:bob"} {
		if got := list.For(other); got != 0 {
			t.Errorf("%s may %v", other, got)
		}
	}
}

func TestMasks(t *testing.T) {
	m := Masks{}.Set("/", List).Set("/data", Read|List).Set("/data/out/", Read|Write|List).Set("/data/none", 0)
	for path, want := range map[string]string{
		"/": "l", "/x": "l", "/data": "rl", "/data/in": "rl", "/database": "l", "/data/out": "rwlp",
		"/data/out/a/b": "rwlp", "/data/output": "rl", "/data/none/x": "n", "/datas/out": "l",
	} {
		if got := m.For(path).String(); got != want {
			t.Errorf("mask of %s is %s, want %s", path, got, want)
		}
	}
	if got := (Masks{{"/data", Full}}).For("/database"); got != 0 {
		t.Errorf("a ticket for /data gives %v in /database", got)
	}
	if got := m.Set("/data/", Read); got.For("/data") != Read || len(got) != len(m) || m.For("/data") != Read|List {
		t.Errorf("replacing a mask: %v of %v", got, m)
	}
}

// Case 6 of the list of known faults: each ticket has its owner's rights and its mask,
// never more, and never another ticket's.
func TestTwoTicketsOfOneOwner(t *testing.T) {
	owner := Reset("unix:bob", Read|List).For("unix:bob")
	for mask, want := range map[string]string{"r": "r", "rw": "r"} {
		r, err := ParseRights(mask)
		if err != nil {
			t.Fatal(err)
		}
		if got := owner.And(Masks{{"/", r}}.For("/a/b")).String(); got != want {
			t.Errorf("ticket with mask %s may %s, want %s", mask, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "unix:bob rl\n", "unix:bob rwldpaxv(rlv)\r\n\n* n", "a v(", "a v()", "a\tr\n\x00", "unix:b\xff r\n",
	} {
		f.Add([]byte(seed), "unix:bob")
	}
	f.Fuzz(func(t *testing.T, text []byte, subject string) {
		list, err := Parse(text)
		if err != nil {
			if list != nil {
				t.Fatalf("%v with %v", list, err)
			}
			return
		}
		back, err := Parse([]byte(list.String()))
		if err != nil || cmp.Diff(list, back) != "" {
			t.Fatalf("%q came back as %v, %v", list, back, err)
		}
		r := list.For(subject)
		if got := list.Set(subject, 0).For(subject); got&^r != 0 {
			t.Fatalf("removing %q from %q added %v", subject, list, got)
		}
		for _, mask := range []Rights{0, Read, Full, Reserving(Read)} {
			if left := r.And(mask); left&^r != 0 || left&^mask != 0 {
				t.Fatalf("%v under %v leaves %v", r, mask, left)
			}
		}
	})
}
