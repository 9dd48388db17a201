package installer

import (
	"slices"
	"strings"
	"testing"
)

func TestVersionOrder(t *testing.T) {
	// Each line is older than the next; words on one line are the same version.
	lines := []string{
		"0", "0.9", "1-alpha 1.0.0-alpha", "1.0-alpha.1", "1.0-alpha.2", "1.0b2", "1.0-beta", "1.0-rc2 1.0rc2", "1.0-rc10 v1.0rc10",
		"1 1.0 v1.0.0 1.0.0+build.7", "1.9.0 1.9", "1.10.0", "1.10.0.1", "2.0.0-rc1", "2.0.0", "2024.01 2024.1", "2024.11.30",
	}
	parse := func(s string) Version {
		v, ok := ParseVersion(s)
		if !ok {
			t.Fatalf("%q is no version", s)
		}
		return v
	}
	for i, a := range lines {
		for j, b := range lines {
			for x := range strings.FieldsSeq(a) {
				for y := range strings.FieldsSeq(b) {
					want := 0
					if i != j {
						want = 1 - 2*btoi(i < j)
					}
					if got := parse(x).Compare(parse(y)); got != want {
						t.Errorf("%s against %s: %d, want %d", x, y, got, want)
					}
				}
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestNoVersions(t *testing.T) {
	for _, s := range []string{"", "v", "x", "1.", ".1", "1..2", "1-2", "1.0-", "latest", "current", "1.0/..", "1.0 ", "1.0\n",
		"1.0.2w", "٣", "1.0-rc/1", strings.Repeat("1", 19), strings.Repeat("1.", 70) + "1", "1-" + strings.Repeat("a", 200)} {
		if v, ok := ParseVersion(s); ok {
			t.Errorf("%q was taken for version %v", s, v)
		}
	}
}

func TestArchiveNames(t *testing.T) {
	for file, want := range map[string]string{
		"climate-1.10.0.tar.zst":                "climate|1.10.0|",
		"climate-2.0.0-rc1.tar.gz":              "climate|2.0.0-rc1|",
		"climate-2.0-rc1-linux-amd64.tgz":       "climate|2.0-rc1|linux-amd64",
		"a-b-1.0-linux-x86_64.tar.xz":           "a-b|1.0|linux-amd64",
		"a-1.0-linux-aarch64.tar":               "a|1.0|linux-arm64",
		"a-1.0-any.tar":                         "a|1.0|",
		"a-v1.0.tar.bz2":                        "a|v1.0|",
		"foo-2-1.0.tar":                         "foo-2|1.0|",
		"lib_x++-3.tar":                         "lib_x++|3|",
		"climate.tar.gz":                        "",
		"-1.0.tar":                              "",
		"climate-1.0.zip":                       "",
		"climate-latest.tar.gz":                 "",
		"../x-1.0.tar":                          "",
		"x-1.0.tar.gz.part":                     "",
		".x-1.0.tar":                            "",
		strings.Repeat("x", 260) + "-1.0.tar":   "",
		"x-1.0-rc1-2.tar":                       "x|1.0-rc1-2|",
		"skeletonkey-1.0.0-linux-amd64.tar.zst": "skeletonkey|1.0.0|linux-amd64",
	} {
		a, ok := ParseArchiveName(file)
		got := ""
		if ok {
			got = a.Name + "|" + a.Version.String() + "|" + a.Platform
		}
		if got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

// FuzzVersions: what is taken for a version is a harmless file name, and the order
// is one.
func FuzzVersions(f *testing.F) {
	for _, s := range []string{"1.9.0", "2.0.0-rc1", "v1.0rc10+b", "1.0-a.1-2", "007"} {
		f.Add(s, "1.10", "2")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var all []Version
		for _, s := range []string{a, b, c} {
			v, ok := ParseVersion(s)
			if !ok {
				return
			}
			if !plainName(s) || s[0] == '.' || s[0] == '-' {
				t.Errorf("%q is a version, but no name", s)
			}
			all = append(all, v)
		}
		slices.SortFunc(all, Version.Compare)
		if all[0].Compare(all[2]) > 0 || all[0].Compare(all[1]) != -all[1].Compare(all[0]) {
			t.Errorf("no order: %v", all)
		}
	})
}
