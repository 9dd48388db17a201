package installer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// The files of a published directory beside its archives.
const (
	SumsFile      = "SHA256SUMS"         // checksums, in the form of sha256sum
	SignatureFile = "SHA256SUMS.minisig" // of SumsFile, in the form of minisign
	IndexFile     = "index.json"         // an Index
)

// sums is the content of SHA256SUMS: names without directories to 64 lower case
// hexadecimal digits.
type sums map[string]string

// parseSums reads what sha256sum writes, in text or binary mode.
func parseSums(text []byte) (sums, error) {
	all, n := sums{}, 0
	for line := range bytes.Lines(text) {
		n++
		s := strings.TrimRight(string(line), "\r\n")
		if s == "" {
			continue
		}
		sum, name, _ := strings.Cut(s, " ")
		if name == "" || name[0] != ' ' && name[0] != '*' {
			return nil, fmt.Errorf("%s: line %d is not a checksum and a name", SumsFile, n)
		}
		name, sum = strings.TrimPrefix(name[1:], "./"), strings.ToLower(sum)
		if len(sum) != 64 || checkDigest(sum) != nil {
			return nil, fmt.Errorf("%s: line %d has no SHA-256", SumsFile, n)
		}
		if !plainName(name) {
			continue // in another directory
		}
		if old, twice := all[name]; twice && old != sum {
			return nil, fmt.Errorf("%s: two checksums of %q", SumsFile, name)
		}
		all[name] = sum
	}
	return all, nil
}

// plainName reports whether name is one that a directory can hold and a line of
// sums can say.
func plainName(name string) bool {
	return name != "" && name != "." && name != ".." &&
		!strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '\\' || r < ' ' })
}

// text is the file's content, sorted by name.
func (s sums) text() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s  %s\n", s[name], name)
	}
	return b.Bytes()
}

// readSums reads the sums of a directory; without the file there are none.
func readSums(dir string) (sums, error) {
	text, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return sums{}, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := parseSums(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return all, nil
}

// checkUnsigned refuses a directory whose sums are signed: a change of them would
// leave the signature wrong.
func checkUnsigned(dir string) error {
	signature := filepath.Join(dir, SignatureFile)
	if _, err := os.Lstat(signature); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the checksums in %s are signed: make the archive elsewhere and publish it there", dir)
	}
	return nil
}

// writeChanged gives a file of dir its content by one rename, unless it has it.
func writeChanged(dir, name string, content []byte) error {
	path := filepath.Join(dir, name)
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, content) {
		return nil
	}
	if err := renameio.WriteFile(path, content, 0o644); err != nil {
		return err
	}
	return syncDir(dir)
}

// hashFile returns a file's SHA-256 and size.
func hashFile(ctx context.Context, path string) (string, int64, error) {
	f, err := openRegular(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum, counted := sha256.New(), &countedReader{r: &contextReader{ctx, f}}
	if err := drain(io.TeeReader(counted, sum)); err != nil {
		return "", 0, err
	}
	return hex.EncodeToString(sum.Sum(nil)), counted.n, nil
}

type countedReader struct {
	r io.Reader
	n int64
}

func (c *countedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// contextReader ends with ctx's error.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// drain reads r to its end.
func drain(r io.Reader) error {
	_, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{r}, make([]byte, 1<<20))
	return err
}
