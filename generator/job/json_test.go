package job

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ready returns a Job with every field set.
func ready(t *testing.T) *Job {
	t.Helper()
	j, err := Load(filepath.Join("testdata", "full.ini"), Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	j.Ticket.Digest, j.Ticket.Expires = "0123456789abcdef0123456789abcdef", 1900000000
	j.Runtime.AddSum(Sum{"arm64", strings.Repeat("b", 64), 21})
	j.Runtime.AddSum(Sum{"amd64", strings.Repeat("0", 64), 20})
	j.Runtime.AddSum(Sum{"amd64", strings.Repeat("a", 64), 22})
	j.Environment["LINES"] = "a\nb\u2028<&>\x01"
	return j
}

func TestEncodeDecode(t *testing.T) {
	j := ready(t)
	data, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "ready.json"), data)
	back, err := Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(j, back); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "ready.json"))
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	if _, err := Decode([]byte(strings.ReplaceAll(good, "\n", " "))); err != nil {
		t.Fatalf("white space counts: %v", err)
	}
	for name, change := range map[string][2]string{
		"version":        {`"version": 1`, `"version": 2`},
		"no version":     {`"version": 1,`, ``},
		"unknown field":  {`"version": 1`, `"version": 1, "extra": 0`},
		"other case":     {`"name": "full"`, `"NAME": "full"`},
		"repeated":       {`"name": "full"`, `"name": "x", "name": "full"`},
		"not UTF-8":      {`36h`, "\xff"},
		"job name":       {`"name": "full"`, `"name": "../x"`},
		"server":         {`data.example.org:9094`, `data.example.org`},
		"no server":      {`"server": "data.example.org:9094",`, ``},
		"dot dot":        {`"/common/maps"`, `"/common/../maps"`},
		"server's name":  {`"/common/maps"`, `"/common/.__acl"`},
		"link name":      {`"name": "common_maps"`, `"name": "a/b"`},
		"same link":      {`"name": "common_maps"`, `"name": "records"`},
		"same directory": {`"/common/maps"`, `"/records"`},
		"script":         {`./climate/run.sh`, `../run.sh`},
		"checksum":       {`e3b0c4`, `E3B0C4`},
		"variable":       {`"OMP_NUM_THREADS"`, `"OMP NUM"`},
		"our variable":   {`"OMP_NUM_THREADS"`, `"SKELETONKEY_X"`},
		"proxy":          {`http://squid:3128`, `squid`},
		"repository":     {`a.example.org`, `a/b`},
		"runtime":        {`http://host.example.org:9095/dist`, `dist`},
		"runtime order":  {`"arm64"`, `"aaa64"`},
		"digest":         {`0123456789abcdef0123456789abcdef`, `../../etc/passwd`},
		"expiry":         {`1900000000`, `-1`},
		"no ticket":      {"\"digest\": \"0123456789abcdef0123456789abcdef\",\n    \"expires\": 1900000000", `"seconds": 1`},
		"seconds":        {`"seconds": 129600`, `"seconds": 0`},
		"trailing":       {"\n}\n", "\n}\n{}"},
		"cut":            {"\n}\n", ""},
		"NUL":            {`two words`, `two\u0000words`},
	} {
		if strings.Count(good, change[0]) == 0 && name != "not UTF-8" {
			t.Fatalf("%s: %q is not in the file", name, change[0])
		}
		bad := strings.Replace(good, change[0], change[1], 1)
		if name == "not UTF-8" {
			bad = strings.Replace(good, `C:\\`, "C:\xff", 1)
		}
		if j, err := Decode([]byte(bad)); err == nil || j != nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestEncodeRefusesIncomplete(t *testing.T) {
	j := ready(t)
	j.Ticket.Digest, j.Ticket.Expires = "", 0
	if _, err := j.Encode(); err == nil {
		t.Error("directories without a ticket were encoded")
	}
	j.Dirs = nil
	if _, err := j.Encode(); err != nil {
		t.Errorf("no directories, no ticket: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "ready.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Decode(data)
		if err != nil {
			return
		}
		if _, err := j.Encode(); err != nil {
			t.Errorf("decoded, but not encoded: %v", err)
		}
	})
}
