package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// literal lists every command with the bytes that stand for it on the wire.
var literal = []struct {
	line string
	want Request
}{
	{"open /a%20b rwtcx 420", &Open{"/a b", OpenRead | OpenWrite | OpenCreate | OpenTruncate | OpenExclude, 0o644}},
	{"close 3", &Close{3}},
	{"pread 3 4096 1099511627776", &Pread{3, 4096, 1 << 40}},
	{"pwrite 3 5 0", &Pwrite{3, 5, 0}},
	{"sread 3 100 10 20 7", &Sread{3, 100, 10, 20, 7}},
	{"swrite 3 100 10 20 7", &Swrite{3, 100, 10, 20, 7}},
	{"read 3 10", &Read{3, 10}},
	{"write 3 10", &Write{3, 10}},
	{"lseek 3 -5 2", &Lseek{3, -5, 2}},
	{"fstat 3", &Fstat{3}},
	{"fstatfs 3", &Fstatfs{3}},
	{"fsync 3", &Fsync{3}},
	{"ftruncate 3 0", &Ftruncate{3, 0}},
	{"fchmod 3 384", &Fchmod{3, 0o600}},
	{"fchown 3 1 2", &Fchown{3, 1, 2}},
	{"getfile /f", &Getfile{"/f"}},
	{"putfile /f 420 6", &Putfile{"/f", 0o644, 6}},
	{"getstream /f", &Getstream{"/f"}},
	{"putstream /f", &Putstream{"/f"}},
	{"stat /", &StatPath{"/"}},
	{"lstat /", &Lstat{"/"}},
	{"access /f 4", &Access{"/f", 4}},
	{"unlink /f", &Unlink{"/f"}},
	{"rmdir /d", &Rmdir{"/d"}},
	{"rmall /d", &Rmall{"/d"}},
	{"mkdir /d 493", &Mkdir{"/d", 0o755}},
	{"rename /a%20b /c%20d", &Rename{"/a b", "/c d"}},
	{"link /a /b", &Link{"/a", "/b"}},
	{"symlink ../x /b", &Symlink{"../x", "/b"}},
	{"readlink /b 1024", &Readlink{"/b", 1024}},
	{"chmod /f 420", &Chmod{"/f", 0o644}},
	{"chown /f 1 2", &Chown{"/f", 1, 2}},
	{"lchown /f 1 2", &Lchown{"/f", 1, 2}},
	{"truncate /f 9", &Truncate{"/f", 9}},
	{"utime /f -1 4320000000", &Utime{"/f", -1, 4320000000}},
	{"getdir /", &Getdir{"/"}},
	{"getlongdir /", &Getlongdir{"/"}},
	{"statfs /", &StatfsPath{"/"}},
	{"search *.c /a 3", &Search{"*.c", "/a", 3}},
	{"audit /", &Audit{"/"}},
	{"localpath /", &Localpath{"/"}},
	{"getxattr /f user.a", &Getxattr{"/f", "user.a"}},
	{"fgetxattr 3 user.a", &Fgetxattr{3, "user.a"}},
	{"lgetxattr /f user.a", &Lgetxattr{"/f", "user.a"}},
	{"listxattr /f", &Listxattr{"/f"}},
	{"flistxattr 3", &Flistxattr{3}},
	{"llistxattr /f", &Llistxattr{"/f"}},
	{"setxattr /f user.a 3 0", &Setxattr{"/f", "user.a", 3, 0}},
	{"fsetxattr 3 user.a 3 0", &Fsetxattr{3, "user.a", 3, 0}},
	{"lsetxattr /f user.a 3 0", &Lsetxattr{"/f", "user.a", 3, 0}},
	{"removexattr /f user.a", &Removexattr{"/f", "user.a"}},
	{"fremovexattr 3 user.a", &Fremovexattr{3, "user.a"}},
	{"lremovexattr /f user.a", &Lremovexattr{"/f", "user.a"}},
	{"md5 /f", &MD5{"/f"}},
	{"hash sha1 /f", &Hash{"sha1", "/f"}},
	{"setrep /f 2", &Setrep{"/f", 2}},
	{"whoami 100", &Whoami{100}},
	{"whoareyou h:9094 100", &Whoareyou{"h:9094", 100}},
	{"getacl /", &Getacl{"/"}},
	{"setacl / unix:a rwl", &Setacl{"/", "unix:a", "rwl"}},
	{"setacl / unix:a", &Setacl{"/", "unix:a", ""}},
	{"resetacl / rwl", &Resetacl{"/", "rwl"}},
	{"ticket_register self 3600 451", &TicketRegister{"self", 3600, 451}},
	{"ticket_modify ticket:ab /d rl", &TicketModify{"ticket:ab", "/d", "rl"}},
	{"ticket_get ticket:ab", &TicketGet{"ticket:ab"}},
	{"ticket_list self", &TicketList{"self"}},
	{"ticket_delete ticket:ab", &TicketDelete{"ticket:ab"}},
	{"mkalloc /d 1000 493", &Mkalloc{"/d", 1000, 0o755}},
	{"lsalloc /d", &Lsalloc{"/d"}},
	{"thirdput /f h /g", &Thirdput{"/f", "h", "/g"}},
}

func TestRequestsToTheLetter(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range literal {
		seen[c.want.Command()] = true
		got, err := ParseRequest([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
		} else if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.line, diff)
		}
		line, err := AppendRequest([]byte("before "), c.want)
		if err != nil || string(line) != "before "+c.line+"\n" {
			t.Errorf("%T encodes as %q, %v; want %q", c.want, line, err, c.line)
		}
	}
	for _, name := range Commands() {
		if !seen[name] {
			t.Errorf("command %s has no literal test", name)
		}
	}
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct {
		line     string
		lostStep bool
	}{
		{"frobnicate /", false},
		{"stat", false},
		{"stat ", false},
		{"stat /%00", false},
		{"open /a q 420", false},
		{"open /a r", false},
		{"close three", false},
		{"close 99999999999999999999", false},
		{"pread 1 -1 0", false},
		{"pread 1 1 -1", false},
		{"pwrite 1 -1 0", true},
		{"pwrite 1 x 0", true},
		{"setxattr /f a", true},
		{"ticket_register self 60", true},
	} {
		r, err := ParseRequest([]byte(c.line))
		var lost *LostStepError
		if r != nil || !errors.Is(err, InvalidRequest) || errors.As(err, &lost) != c.lostStep {
			t.Errorf("%q: %v, %v; want InvalidRequest, lost step %v", c.line, r, err, c.lostStep)
		}
	}
}

func TestRequestsThatCannotBeSaid(t *testing.T) {
	for _, r := range []Request{
		&StatPath{""}, &StatPath{"/a\x00b"}, &Setacl{"/", "unix:a b", "r"}, &Setacl{"/", "a\nb", "r"},
		&Getxattr{"/f", ""}, &Pread{1, -1, 0}, &Whoareyou{"h h", 1},
	} {
		if line, err := AppendRequest([]byte("as it was"), r); !errors.Is(err, InvalidRequest) || string(line) != "as it was" {
			t.Errorf("%+v encodes as %q, %v", r, line, err)
		}
	}
}

func TestSubjectIsSentAsItIs(t *testing.T) {
	line, err := AppendRequest(nil, &Setacl{"/", "hostname:*.é.example", "rl"})
	if err != nil || string(line) != "setacl / hostname:*.é.example rl\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func FuzzParseRequest(f *testing.F) {
	for _, c := range literal {
		f.Add(c.line)
	}
	f.Add("pwrite 1 \t 2  3 4 5")
	f.Fuzz(func(t *testing.T, line string) {
		r, err := ParseRequest([]byte(line))
		if err != nil {
			if !errors.Is(err, InvalidRequest) {
				t.Fatalf("error %v has no code", err)
			}
			return
		}
		if d, ok := r.(WithData); ok && d.DataLength() < 0 {
			t.Fatalf("negative data length: %+v", r)
		}
		again, err := AppendRequest(nil, r)
		if err != nil {
			if strings.ContainsAny(line, "\r\n\x7f") || hasControl(line) {
				return // such bytes end words or lines and never come out of ReadLine or a client
			}
			t.Fatalf("%q parses as %+v, which cannot be said: %v", line, r, err)
		}
		back, err := ParseRequest(again[:len(again)-1])
		if err != nil || !reflect.DeepEqual(back, r) {
			t.Fatalf("%q -> %+v -> %q -> %+v, %v", line, r, again, back, err)
		}
	})
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

func BenchmarkParsePread(b *testing.B) {
	line := []byte("pread 3 1048576 1099511627776")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRequest(line); err != nil {
			b.Fatal(err)
		}
	}
}
