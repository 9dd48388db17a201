package acl

import "testing"

func TestParseRights(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Rights
		out  string
	}{
		{"r", Read, "r"},
		{"rwlda", Read | Write | List | Delete | Admin, "rwldpa"},
		{"w", Write, "wp"},
		{"p", Put, "p"},
		{"adlwr", Read | Write | List | Delete | Admin, "rwldpa"},
		{"rwldpax", Full, "rwldpax"},
		{"n", 0, "n"},
		{"-", 0, "n"},
		{".", 0, "n"},
		{"v", Reserving(reserveDefault), "v(rwldpa)"},
		{"v()", Reserving(reserveDefault), "v(rwldpa)"},
		{"v(rl)", Reserving(Read | List), "v(rl)"},
		{"v(rl)d", Delete | Reserving(Read|List), "dv(rl)"},
		{"lv(w)", List | Reserving(Write), "lv(wp)"},
		{"v(rlv)", Reserving(Read | List | Reserve), "v(rlv)"},
	} {
		got, err := ParseRights(c.in)
		if err != nil || got != c.want || got.String() != c.out {
			t.Errorf("ParseRights(%q) = %v, %v; want %v written %q", c.in, got, err, c.want, c.out)
		}
		if again, err := ParseRights(got.String()); err != nil || again != got {
			t.Errorf("%q does not come back: %v, %v", got, again, err)
		}
	}
}

func TestParseRightsRefuses(t *testing.T) {
	for _, in := range []string{"", "R", "rq", "rn", "v(", "v(r", "v(r))", "v((r))", "v(n)", ")", "r w", "none", "v(v())"} {
		if got, err := ParseRights(in); err == nil || got != 0 {
			t.Errorf("ParseRights(%q) = %v, %v; want an error and nothing", in, got, err)
		}
	}
}

func TestHas(t *testing.T) {
	for _, c := range []struct {
		have, want Rights
		ok         bool
	}{
		{Write, Put, true},
		{Put, Write, false},
		{Read | List, Read | List, true},
		{Read, Read | List, false},
		{0, Read, false},
		{Reserving(Read), Reserve, true},
		{Reserving(Read), Read, false},
	} {
		if c.have.Has(c.want) != c.ok {
			t.Errorf("%v has %v: want %v", c.have, c.want, c.ok)
		}
	}
}

func TestReserved(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"r", "n"},
		{"v", "rwldpa"},
		{"rwv(rl)", "rl"},
		{"v(rlv)", "rlv(rlv)"},
	} {
		r, err := ParseRights(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Reserved().String(); got != c.want {
			t.Errorf("%q reserves %q, want %q", c.in, got, c.want)
		}
	}
	if got := Rights(0x100).Reserved(); got != 0 {
		t.Errorf("rights without v reserve %v", got)
	}
}

// A mask must not turn into more when it is written and read again: v without anything
// to hand out would be read as v(rwlda).
func TestAndNeverAdds(t *testing.T) {
	for _, c := range []struct{ own, mask, want string }{
		{"rwlda", "rl", "rl"},
		{"p", "rw", "p"},
		{"rw", "p", "p"},
		{"v(rl)", "v(wd)", "n"},
		{"v(rl)", "v", "v(rl)"},
		{"rv(rl)", "r", "r"},
		{"rlv(rlv)", "v(rv)l", "lv(rv)"},
		{"n", "rwldax", "n"},
	} {
		own, err1 := ParseRights(c.own)
		mask, err2 := ParseRights(c.mask)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, got := range []Rights{own.And(mask), mask.And(own)} {
			back, err := ParseRights(got.String())
			if got.String() != c.want || err != nil || back != got {
				t.Errorf("%s under %s: %v, read back as %v, %v; want %s", c.own, c.mask, got, back, err, c.want)
			}
		}
	}
}
