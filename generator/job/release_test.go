package job

import (
	"strings"
	"testing"
)

func TestVersionOfApplication(t *testing.T) {
	const app = "[Application]\nscript = climate/run.sh\n[Runtime]\nlocation = /r\n[Application]\n"
	parse := func(text string) (*Job, string) {
		j, err := Parse("t.ini", []byte(app+text), Defaults{})
		if err != nil {
			return nil, err.Error()
		}
		return j, ""
	}
	j, fault := parse("location = http://host/soft/climate\nversion = latest\npublic_key = RWx\n")
	if fault != "" {
		t.Fatal(fault)
	}
	if dir, name, ok := j.Application.Release(); !ok || dir != "http://host/soft" || name != "climate" || j.Application.PublicKey != "RWx" {
		t.Errorf("%q, %q, %v", dir, name, ok)
	}
	for text, want := range map[string]string{
		"location = http://host/soft/climate\nversion = 1.0/..\n":                           "is no version",
		"location = http://host/soft/\nversion = latest\n":                                  "needs \"location\"",
		"location = climate\nversion = latest\n":                                            "needs \"location\"",
		"version = latest\n":                                                                "needs \"location\"",
		"location = /x/y\nversion = 1\nsha256 = " + exampleSum + "\n":                       "leave one out",
		"location = /x/y\npublic_key = RWx\n":                                               "without \"version\"",
		"location = http://host/soft/climate\nversion = " + strings.Repeat("1", 200) + "\n": "is no version",
	} {
		if _, fault := parse(text); !strings.Contains(fault, want) {
			t.Errorf("%q: %q, want %q", text, fault, want)
		}
	}
}
