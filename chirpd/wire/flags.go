package wire

import (
	"fmt"
	"strings"
)

// OpenFlags are the letters of an open request.
type OpenFlags uint8

// The letters, in the order in which real clients print them.
const (
	OpenRead     OpenFlags = 1 << iota // r
	OpenWrite                          // w
	OpenAppend                         // a: every write goes to the end of the file, whatever its offset
	OpenTruncate                       // t
	OpenCreate                         // c
	OpenExclude                        // x: with c, the file must not exist
	OpenSync                           // s: every write is on disk before it is answered
)

const openLetters = "rwatcxs"

// String is the flags' letters. No flags at all are "r".
func (f OpenFlags) String() string {
	var b strings.Builder
	for i := range len(openLetters) {
		if f&(1<<i) != 0 {
			b.WriteByte(openLetters[i])
		}
	}
	if b.Len() == 0 {
		return "r"
	}
	return b.String()
}

// ParseOpenFlags reads letters of an open request; one that it does not know is
// an error, as opening with less than was asked for could lose data.
func ParseOpenFlags(s string) (OpenFlags, error) {
	var f OpenFlags
	for i := range len(s) {
		k := strings.IndexByte(openLetters, s[i])
		if k < 0 {
			return 0, fmt.Errorf("open flag %q is not one of %s", s[i], openLetters)
		}
		f |= 1 << k
	}
	return f, nil
}

// Writes reports whether the flags ask for more than reading.
func (f OpenFlags) Writes() bool {
	return f&(OpenWrite|OpenAppend|OpenTruncate|OpenCreate) != 0
}

// SearchFlags are the bits of a search request.
type SearchFlags int64

// The bits of a search request.
const (
	SearchStopAtFirst SearchFlags = 1
	SearchMetadata    SearchFlags = 2
	SearchIncludeRoot SearchFlags = 4
	SearchPeriod      SearchFlags = 8
	SearchReadable    SearchFlags = 16
	SearchWritable    SearchFlags = 32
	SearchExecutable  SearchFlags = 64
)
