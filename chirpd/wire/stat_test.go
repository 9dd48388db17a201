package wire

import (
	"testing"
)

func TestStatLine(t *testing.T) {
	const line = "2049 131 33188 1 1000 1000 0 5 4096 8 1700000000 -1 4320000000"
	s, err := ParseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	want := Stat{2049, 131, 0o100644, 1, 1000, 1000, 0, 5, 4096, 8, 1700000000, -1, 4320000000}
	if s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	if got := string(s.Append(nil)); got != line+"\n" {
		t.Errorf("%q, want %q", got, line)
	}
	if !s.IsRegular() || s.IsDir() || s.IsSymlink() || s.ModTime().Unix() != -1 {
		t.Errorf("kind or time of %+v is wrong", s)
	}
}

func TestStatfsLine(t *testing.T) {
	s, err := ParseStatfs([]byte("61267 4096 1000 500 400 200 100"))
	if err != nil || s != (Statfs{61267, 4096, 1000, 500, 400, 200, 100}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := string(s.Append(nil)); got != "61267 4096 1000 500 400 200 100\n" {
		t.Errorf("%q", got)
	}
}

func TestTornStatLines(t *testing.T) {
	for _, line := range []string{"", "1 2 3", "1 2 3 4 5 6 7 8 9 10 11 12 x", "1.5 2 3 4 5 6 7 8 9 10 11 12 13"} {
		if s, err := ParseStat([]byte(line)); err == nil {
			t.Errorf("%q gives %+v", line, s)
		}
	}
}

func TestReplyNumber(t *testing.T) {
	for line, want := range map[string]int64{"0": 0, "-8": -8, " 12 ": 12, "9223372036854775807": 1<<63 - 1} {
		if n, err := ParseInt([]byte(line)); err != nil || n != want {
			t.Errorf("%q is %d, %v", line, n, err)
		}
	}
	for _, line := range []string{"", "yes", "1 2", "0x1", "99999999999999999999"} {
		if n, err := ParseInt([]byte(line)); err == nil {
			t.Errorf("%q is %d", line, n)
		}
	}
}

func TestOpenFlags(t *testing.T) {
	all, err := ParseOpenFlags("rwatcxs")
	if err != nil || all.String() != "rwatcxs" {
		t.Errorf("%v, %v", all, err)
	}
	if f := OpenFlags(0).String(); f != "r" {
		t.Errorf("no flags are %q", f)
	}
	if OpenRead.Writes() || !(OpenRead | OpenCreate).Writes() {
		t.Error("Writes is wrong")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("2049 131 33188 1 1000 1000 0 5 4096 8 1700000000 -1 4320000000")
	f.Fuzz(func(t *testing.T, line string) {
		s, err := ParseStat([]byte(line))
		if err != nil {
			return
		}
		out := s.Append(nil)
		if back, err := ParseStat(out[:len(out)-1]); err != nil || back != s {
			t.Fatalf("%q came back as %+v, %v", line, back, err)
		}
	})
}
