package installer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var compressions = []string{"tar", "gz", "xz", "zst", "bz2"}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestEnds: what may follow an archive, and its compression, and what may not.
func TestEnds(t *testing.T) {
	a := tarball(t, member{name: "a", body: "first"})
	b := tarball(t, member{name: "b", body: "second"})
	pad := func(n int) []byte { return make([]byte, n) }
	junk := []byte("this does not belong to the archive, and nobody knows what it is for")
	for _, format := range compressions {
		pack := func(data []byte) []byte { return compress(t, format, data) }
		whole := pack(a)
		cases := []struct {
			name    string
			archive []byte
			want    error
			names   string
		}{
			{"nothing", whole, nil, "a"},
			{"padding 1", join(whole, pad(1)), nil, "a"},
			{"padding 2", join(whole, pad(2)), nil, "a"},
			{"padding 3", join(whole, pad(3)), nil, "a"},
			{"padding 512", join(whole, pad(512)), nil, "a"},
			{"padding 100000", join(whole, pad(100_000)), nil, "a"},
			{"inner padding", pack(join(a, pad(100_000))), nil, "a"},
			{"inner padding 700", pack(join(a, pad(700))), nil, "a"},
			{"junk", join(whole, junk), ErrTrailing, "a"},
			{"junk block", join(whole, bytes.Repeat([]byte("x"), 512)), ErrTrailing, "a"},
			{"padding, junk", join(whole, pad(512), junk), ErrTrailing, "a"},
			{"one zero, junk", join(whole, pad(1), junk), ErrTrailing, "a"},
			{"inner junk", pack(join(a, junk)), ErrTrailing, "a"},
			{"inner padding, junk", pack(join(a, pad(3000), junk)), ErrTrailing, "a"},
			{"second archive", join(whole, pack(b)), nil, "a b"},
			{"padding, second archive", join(whole, pad(1024), pack(b)), nil, "a b"},
			{"inner second archive", pack(join(a, b)), nil, "a b"},
			{"second member", join(pack(a[:700]), pack(a[700:])), nil, "a"},
			{"many members", join(pack(a[:1]), pack(nil), pack(a[1:600]), pack(a[600:601]), pack(a[601:])), nil, "a"},
			{"no mark of the end", pack(a[:len(a)-1024]), ErrTruncated, "a"},
			{"one zero block", pack(a[:len(a)-512]), nil, "a"},
			{"one zero block, second archive", pack(join(a[:len(a)-512], b)), nil, "a b"},
			{"second archive cut", pack(join(a, b[:600])), ErrTruncated, "a"},
			{"nothing at all", nil, ErrTruncated, ""},
		}
		for _, c := range cases {
			t.Run(format+" "+c.name, func(t *testing.T) {
				dir, _, err := extract(t, c.archive, UnpackOptions{})
				if !errors.Is(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
				if got := strings.Join(listing(t, dir), " "); got != c.names {
					t.Errorf("extracted %q, want %q", got, c.names)
				}
			})
		}
	}
}

// TestEveryCutIsNoticed cuts an archive at each byte before its end (every 31st if
// it is not compressed).
func TestEveryCutIsNoticed(t *testing.T) {
	a := tarball(t, member{name: "a", body: "x"}, member{name: "b", pax: map[string]string{"comment": "c"}})
	for _, format := range compressions {
		whole := compress(t, format, a)
		end, step := len(whole), 1
		if format == "tar" { // much longer; its last 1024 bytes are the mark of its end
			end, step = end-1024, 31
		}
		dir := t.TempDir()
		for n := 0; n < end; n += step {
			_, err := Unpack(context.Background(), bytes.NewReader(whole[:n]), dir, UnpackOptions{})
			if !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrFormat) {
				t.Errorf("%s cut at %d of %d: %v", format, n, len(whole), err)
			}
		}
	}
}

// TestEveryFlippedBitIsHarmless damages each byte: with a compression that has
// checks, it must be noticed or change nothing.
func TestEveryFlippedBitIsHarmless(t *testing.T) {
	a := tarball(t, member{name: "a", body: strings.Repeat("content", 20)})
	want, _, err := extract(t, a, UnpackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"gz", "xz", "zst", "bz2"} {
		whole := compress(t, format, a)
		dir := t.TempDir()
		accepted := 0
		for i := range whole {
			damaged := bytes.Clone(whole)
			damaged[i] ^= 1 << (i % 8)
			if _, err := Unpack(context.Background(), bytes.NewReader(damaged), dir, UnpackOptions{}); err != nil {
				continue
			}
			accepted++
			if got := snapshot(t, dir+"/a"); got != snapshot(t, want+"/a") {
				t.Errorf("%s: a flipped bit in byte %d gives\n%s", format, i, got)
			}
		}
		if accepted > 12 { // fields without meaning: gzip's time and system
			t.Errorf("%s: %d of %d flipped bits were not noticed", format, accepted, len(whole))
		}
	}
}

func TestNotAnArchive(t *testing.T) {
	for _, c := range []struct{ content, text string }{
		{"<!DOCTYPE html><html>404 Not Found</html>", "web page"},
		{strings.Repeat("no tar header ", 100), "begins with"},
		{"PK\x03\x04", "begins with"},
		{string(gzipped(t, []byte(strings.Repeat("not a tar archive ", 100)))), "no tar header"},
	} {
		_, _, err := extract(t, []byte(c.content), UnpackOptions{})
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.20q: %v", c.content, err)
		}
	}
}

// TestReadErrors: an error of the reader is the error of Unpack, never a shorter
// archive.
func TestReadErrors(t *testing.T) {
	a := tarball(t, member{name: "a", body: strings.Repeat("content", 1000)})
	for _, format := range compressions {
		whole := compress(t, format, a)
		for _, n := range []int{0, 3, 100, len(whole) - 1, len(whole)} {
			broken := errors.New("the disk is on fire")
			r := io.MultiReader(iotest.OneByteReader(bytes.NewReader(whole[:n])), iotest.ErrReader(broken))
			_, err := Unpack(context.Background(), r, t.TempDir(), UnpackOptions{})
			if !errors.Is(err, broken) {
				t.Errorf("%s broken at %d: %v", format, n, err)
			}
		}
	}
}

// TestCancel ends an extraction in the middle; goleak sees whether anything goes
// on.
func TestCancel(t *testing.T) {
	var members []member
	for i := range 1000 {
		members = append(members, member{name: fmt.Sprint(i), body: strings.Repeat("x", 2000)})
	}
	for _, format := range compressions {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		archive := compress(t, format, tarball(t, members...))
		dir := t.TempDir()
		sum, err := Unpack(ctx, bytes.NewReader(archive), dir, UnpackOptions{Progress: func(s Summary) {
			if s.Files == 10 {
				cancel(why)
			}
		}})
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", format, err)
		}
		if n := int64(len(listing(t, dir))); n != sum.Files && n != sum.Files+1 || n == 1000 {
			t.Errorf("%s: %d files, summary %+v", format, n, sum)
		}
		cancel(nil)
	}
}
