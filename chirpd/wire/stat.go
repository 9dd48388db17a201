package wire

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// Stat is one stat line: the attributes of a file as the plain protocol tells
// them. Times are whole seconds since 1970 and may be negative; Blocks counts
// 512 bytes each.
type Stat struct {
	Dev, Ino, Mode, Nlink, UID, GID, Rdev int64
	Size, Blksize, Blocks                 int64
	Atime, Mtime, Ctime                   int64
}

// The file types in Stat.Mode, as in POSIX's S_IFMT.
const (
	ModeType    = 0o170000
	ModeDir     = 0o040000
	ModeRegular = 0o100000
	ModeSymlink = 0o120000
)

// IsDir, IsRegular and IsSymlink tell the kind of file.
func (s *Stat) IsDir() bool { return s.Mode&ModeType == ModeDir }

// IsRegular reports whether s is of a regular file.
func (s *Stat) IsRegular() bool { return s.Mode&ModeType == ModeRegular }

// IsSymlink reports whether s is of a symbolic link.
func (s *Stat) IsSymlink() bool { return s.Mode&ModeType == ModeSymlink }

// ModTime is Mtime as a time.
func (s *Stat) ModTime() time.Time { return time.Unix(s.Mtime, 0) }

func (s *Stat) fields() []*int64 {
	return []*int64{&s.Dev, &s.Ino, &s.Mode, &s.Nlink, &s.UID, &s.GID, &s.Rdev,
		&s.Size, &s.Blksize, &s.Blocks, &s.Atime, &s.Mtime, &s.Ctime}
}

// Append appends the stat line with its LF to dst.
func (s *Stat) Append(dst []byte) []byte { return appendInts(dst, s.fields()) }

// ParseStat reads a stat line without its LF.
func ParseStat(line []byte) (Stat, error) {
	var s Stat
	return s, parseInts(line, s.fields(), "stat")
}

// Statfs is one statfs line: the space of the file system behind a path, in
// blocks of Bsize bytes.
type Statfs struct {
	Type, Bsize, Blocks, Bfree, Bavail, Files, Ffree int64
}

func (s *Statfs) fields() []*int64 {
	return []*int64{&s.Type, &s.Bsize, &s.Blocks, &s.Bfree, &s.Bavail, &s.Files, &s.Ffree}
}

// Append appends the statfs line with its LF to dst.
func (s *Statfs) Append(dst []byte) []byte { return appendInts(dst, s.fields()) }

// ParseStatfs reads a statfs line without its LF.
func ParseStatfs(line []byte) (Statfs, error) {
	var s Statfs
	return s, parseInts(line, s.fields(), "statfs")
}

func appendInts(dst []byte, fields []*int64) []byte {
	for i, f := range fields {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(dst, *f, 10)
	}
	return append(dst, '\n')
}

// parseInts fills all fields from line. Words after them are let pass, so that
// a newer peer may say more.
func parseInts(line []byte, fields []*int64, what string) error {
	for i, f := range fields {
		var word []byte
		word, line = cutWord(line)
		n, ok := parseInt(word)
		if !ok {
			return fmt.Errorf("%s line: word %d of %d is %q, not a number", what, i+1, len(fields), word)
		}
		*f = n
	}
	return nil
}

// cutWord takes the first word off line; blanks and tabs separate words.
func cutWord(line []byte) (word, rest []byte) {
	line = bytes.TrimLeft(line, " \t")
	if i := bytes.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i+1:]
	}
	return line, nil
}

// parseInt reads a signed decimal number of 64 bits without allocating.
func parseInt(word []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(word), 10, 64)
	return n, err == nil
}

// AppendInt appends a reply's number line to dst.
func AppendInt(dst []byte, n int64) []byte {
	return append(strconv.AppendInt(dst, n, 10), '\n')
}

// ParseInt reads a reply's number line without its LF.
func ParseInt(line []byte) (int64, error) {
	word, rest := cutWord(line)
	n, ok := parseInt(word)
	if !ok || len(bytes.TrimSpace(rest)) != 0 {
		return 0, fmt.Errorf("reply %.80q is not a number", line)
	}
	return n, nil
}
