package installer

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// Version is the version of a release: numbers, and perhaps a mark of a
// pre-release. The zero value is no version.
type Version struct {
	text    string
	numbers []uint64
	pre     string
}

// versionForm is numbers separated by dots, then a pre-release: anything that
// begins with a letter after a hyphen (2.0.0-rc1), or one of the usual marks
// without one (2.0rc1), then build metadata.
var versionForm = regexp.MustCompile(`^v?(\d{1,18}(?:\.\d{1,18}){0,15})` +
	`(?:-([A-Za-z][0-9A-Za-z.-]*)|((?:rc|alpha|beta|pre|dev|a|b)\.?\d*))?(?:\+[0-9A-Za-z.-]+)?$`)

const maxVersion = 128 // bytes of a version's text

// ParseVersion reads a version, with or without a v in front; ok is false for
// what is none, a hyphen followed by a digit included.
func ParseVersion(s string) (v Version, ok bool) {
	m := versionForm.FindStringSubmatch(s)
	if m == nil || len(s) > maxVersion {
		return Version{}, false
	}
	v = Version{text: s, pre: m[2] + m[3]}
	for part := range strings.SplitSeq(m[1], ".") {
		n, _ := strconv.ParseUint(part, 10, 64) // at most 18 digits
		v.numbers = append(v.numbers, n)
	}
	return v, true
}

// String returns the version as it was written.
func (v Version) String() string { return v.text }

// Prerelease reports whether the version comes before the release of its numbers.
func (v Version) Prerelease() bool { return v.pre != "" }

// Compare returns -1, 0 or +1 as v is older than, equal to or newer than w:
// numbers count as numbers, missing ones as 0, a pre-release is older than its
// release, numbers within its mark count as such, and build metadata does not.
func (v Version) Compare(w Version) int {
	for i := range max(len(v.numbers), len(w.numbers)) {
		if c := cmp.Compare(numberAt(v.numbers, i), numberAt(w.numbers, i)); c != 0 {
			return c
		}
	}
	if (v.pre == "") != (w.pre == "") {
		if v.pre == "" {
			return 1
		}
		return -1
	}
	return compareNatural(v.pre, w.pre)
}

func numberAt(list []uint64, i int) uint64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}

// compareNatural compares text by runs: of digits as numbers, of others by bytes.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		x, y := leadingRun(a), leadingRun(b)
		a, b = a[len(x):], b[len(y):]
		if isDigit(x[0]) && isDigit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if c := cmp.Compare(len(x), len(y)); c != 0 {
				return c
			}
		}
		if c := strings.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(a), len(b))
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingRun returns the digits, or the others, that s begins with; s is not "".
func leadingRun(s string) string {
	for i := range len(s) {
		if isDigit(s[i]) != isDigit(s[0]) {
			return s[:i]
		}
	}
	return s
}

// ArchiveName is what the name of a release's archive says:
// NAME-VERSION[-OS-ARCH].tar[.gz|.xz|.zst|.bz2].
type ArchiveName struct {
	Name     string
	Version  Version
	Platform string // OS-ARCH as Go names them, "" for any
}

var (
	archiveEnd  = regexp.MustCompile(`\.(tar|tar\.(gz|xz|zst|bz2)|tgz|txz|tzst|tbz2?)$`)
	platformEnd = regexp.MustCompile(`-(linux|darwin|freebsd|netbsd|openbsd|windows|any)(?:-([a-z0-9_]+))?$`)
	releaseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,99}$`)
)

// architectures are other names of Go's.
var architectures = map[string]string{"x86_64": "amd64", "x64": "amd64", "aarch64": "arm64", "any": "", "noarch": ""}

// ParseArchiveName reads the name of a file. The first hyphen after which a
// version follows ends the release's name.
func ParseArchiveName(file string) (a ArchiveName, ok bool) {
	end := archiveEnd.FindStringIndex(file)
	if end == nil || len(file) > 255 {
		return ArchiveName{}, false
	}
	stem := file[:end[0]]
	if m := platformEnd.FindStringSubmatch(stem); m != nil {
		stem = strings.TrimSuffix(stem, m[0])
		a.Platform = platform(m[1], m[2])
	}
	for i := 1; i < len(stem); i++ {
		if stem[i] != '-' {
			continue
		}
		if v, ok := ParseVersion(stem[i+1:]); ok && releaseName.MatchString(stem[:i]) {
			a.Name, a.Version = stem[:i], v
			return a, true
		}
	}
	return ArchiveName{}, false
}

// platform makes OS-ARCH of what people write.
func platform(os, arch string) string {
	if other, known := architectures[arch]; known {
		arch = other
	}
	if os == "any" || arch == "" {
		return ""
	}
	return os + "-" + arch
}
