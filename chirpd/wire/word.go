package wire

import (
	"path"
	"strings"
)

const hexDigits = "0123456789ABCDEF"

// mustEncode says which bytes of a path are percent-encoded: what ends a word,
// what real peers encode, and everything above 'z'.
func mustEncode(b byte) bool {
	return b <= ' ' || b > 'z' || strings.IndexByte(`%\<>'"`, b) >= 0
}

// AppendPath appends p to dst, percent-encoded as one word of a request.
func AppendPath(dst []byte, p string) []byte {
	for i := 0; i < len(p); i++ {
		if b := p[i]; mustEncode(b) {
			dst = append(dst, '%', hexDigits[b>>4], hexDigits[b&15])
		} else {
			dst = append(dst, b)
		}
	}
	return dst
}

// DecodePath undoes AppendPath, once: `%2520` is `%20`. A percent sign that two
// hexadecimal digits do not follow stands for itself.
func DecodePath(word []byte) string {
	var b strings.Builder
	b.Grow(len(word))
	for i := 0; i < len(word); i++ {
		if word[i] == '%' && i+2 < len(word) {
			hi, lo := unhex(word[i+1]), unhex(word[i+2])
			if hi >= 0 && lo >= 0 {
				b.WriteByte(byte(hi<<4 | lo))
				i += 2
				continue
			}
		}
		b.WriteByte(word[i])
	}
	return b.String()
}

func unhex(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b >= 'a' && b <= 'f':
		return int(b-'a') + 10
	case b >= 'A' && b <= 'F':
		return int(b-'A') + 10
	}
	return -1
}

// CleanPath anchors p at the export's root and collapses `.`, `..` and repeated
// slashes, as a server does before anything else; nothing leads above the root.
func CleanPath(p string) string { return path.Clean("/" + p) }
