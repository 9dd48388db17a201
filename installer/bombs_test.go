package installer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rawHeader is a tar header block as it is, without the checks of a tar writer.
func rawHeader(name string, kind byte, size int64) []byte {
	b := make([]byte, blockSize)
	copy(b, name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x0000000000000\x00        %c", size, kind))
	copy(b[257:], "ustar\x0000")
	var sum int
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// rawMember is a header and its data, padded.
func rawMember(name string, kind byte, data []byte) []byte {
	return join(rawHeader(name, kind, int64(len(data))), data, make([]byte, -len(data)&(blockSize-1)))
}

// paxHeader is the extended header with the given records.
func paxHeader(records ...string) []byte {
	var data strings.Builder
	for _, r := range records {
		n := len(r) + 3
		for len(fmt.Sprint(n))+len(r)+2 != n {
			n++
		}
		fmt.Fprintf(&data, "%d %s\n", n, r)
	}
	return rawMember("pax", 'x', []byte(data.String()))
}

var endMark = make([]byte, 2*blockSize)

// sparseV1 is a file in GNU's PAX format 1.0, whose map precedes the data.
func sparseV1(size int64, entries int, data string) []byte {
	var m strings.Builder
	fmt.Fprintf(&m, "%d\n", entries)
	for i := range entries {
		fmt.Fprintf(&m, "%d\n1\n", 2*i)
	}
	pad := strings.Repeat("\x00", -m.Len()&(blockSize-1))
	return join(paxHeader("GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=sparse",
		fmt.Sprintf("GNU.sparse.realsize=%d", size)),
		rawMember("GNUSparseFile.0/sparse", '0', []byte(m.String()+pad+data)), endMark)
}

// xzWithDictionary gives an xz file's first block another dictionary size.
func xzWithDictionary(t *testing.T, archive []byte, property byte) []byte {
	t.Helper()
	out := bytes.Clone(archive)
	header := out[12 : 12+(int(out[12])+1)*4]
	body := header[:len(header)-4]
	at := bytes.Index(body, []byte{xzLZMA2, 1})
	if at < 0 || body[1]&0xc0 != 0 {
		t.Fatalf("unexpected block header % x", header)
	}
	body[at+2] = property
	binary.LittleEndian.PutUint32(header[len(body):], crc32.ChecksumIEEE(body))
	return out
}

// zstdWithWindow is a frame of one raw block that asks for a window of 1<<log.
func zstdWithWindow(data []byte, log int) []byte {
	frame := []byte("\x28\xb5\x2f\xfd\x00")
	frame = append(frame, byte(log-10)<<3)
	head := uint32(len(data))<<3 | 1
	return append(append(frame, byte(head), byte(head>>8), byte(head>>16)), data...)
}

// bomb is an archive that wants more than it may have.
type bomb struct {
	name    string
	archive func(t *testing.T) []byte
	limits  Limits
	want    error
	text    string
}

func bombs() []bomb {
	small := func(t *testing.T) []byte { return tarball(t, member{name: "a", body: "x"}) }
	huge := func(t *testing.T) []byte {
		return tarball(t, member{name: "zeros", body: strings.Repeat("\x00", 12<<20)})
	}
	ratio := Limits{RatioFrom: 2 << 20}
	return []bomb{
		{"xz dictionary of 1.5 GB", func(t *testing.T) []byte {
			return xzWithDictionary(t, compress(t, "xz", small(t)), 37)
		}, Limits{}, ErrLimit, "dictionary of 1536 MiB"},
		{"xz dictionary of 96 MiB", func(t *testing.T) []byte {
			return xzWithDictionary(t, compress(t, "xz", small(t)), 29)
		}, Limits{}, ErrLimit, "dictionary of 96 MiB"},
		{"zstd --long=31", func(t *testing.T) []byte { return zstdWithWindow(small(t), 31) }, Limits{}, ErrLimit, "window"},
		{"zstd --long=28", func(t *testing.T) []byte { return zstdWithWindow(small(t), 28) }, Limits{}, ErrLimit, "window"},
		{"gz ratio", func(t *testing.T) []byte { return compress(t, "gz", huge(t)) }, ratio, ErrLimit, "250 times"},
		{"xz ratio", func(t *testing.T) []byte { return compress(t, "xz", huge(t), "-0") }, ratio, ErrLimit, "250 times"},
		{"zst ratio", func(t *testing.T) []byte { return compress(t, "zst", huge(t)) }, ratio, ErrLimit, "250 times"},
		{"bz2 ratio", func(t *testing.T) []byte { return compress(t, "bz2", huge(t)) }, ratio, ErrLimit, "250 times"},
		{"ratio of padding", func(t *testing.T) []byte { return compress(t, "zst", join(small(t), make([]byte, 12<<20))) },
			ratio, ErrLimit, "250 times"},
		{"sparse map of 200,000 entries", func(t *testing.T) []byte {
			return sparseV1(1<<40, 200_000, "")
		}, Limits{FileBytes: 1 << 50, Bytes: 1 << 50}, ErrCorrupt, "sparse"},
		{"sparse file of 1 EiB", func(t *testing.T) []byte { return sparseV1(1<<60, 1, "x") }, Limits{}, ErrLimit, "for a file"},
		{"sparse map in the header", func(t *testing.T) []byte {
			return join(paxHeader("GNU.sparse.size=1000000", "GNU.sparse.numblocks=300000",
				"GNU.sparse.map="+strings.Repeat("0,1,", 300_000)), rawMember("s", '0', nil), endMark)
		}, Limits{}, ErrLimit, "header of over 1 MiB"},
		{"sparse file of unknown format", func(t *testing.T) []byte {
			return join(paxHeader("GNU.sparse.major=2", "GNU.sparse.minor=0"), rawMember("s", '0', nil), endMark)
		}, Limits{}, ErrUnsafe, "unknown format"},
		{"sparse file of star", func(t *testing.T) []byte {
			return join(paxHeader("SCHILY.realsize=1000"), rawMember("s", '0', nil), endMark)
		}, Limits{}, ErrUnsafe, "star"},
		{"size of 8 EiB", func(t *testing.T) []byte {
			return join(paxHeader("size=9223372036854775807"), rawMember("s", '0', nil), endMark)
		}, Limits{}, ErrLimit, "for a file"},
		{"file too large", small2, Limits{FileBytes: 5}, ErrLimit, "more than 5 for a file"},
		{"files too large", small2, Limits{Bytes: 9}, ErrLimit, "more than 9 bytes in all"},
		{"too many members", small2, Limits{Entries: 1}, ErrLimit, "more than 1 members"},
		{"too deep", func(t *testing.T) []byte { return tarball(t, member{name: strings.Repeat("d/", 256) + "f"}) },
			Limits{}, ErrLimit, "deeper than 256"},
		{"name too long", func(t *testing.T) []byte {
			return tarball(t, member{name: strings.Repeat(strings.Repeat("d", 100)+"/", 41) + "f"})
		}, Limits{}, ErrLimit, "longer than 4095"},
		{"global headers without end", func(t *testing.T) []byte {
			g := rawMember("g", 'g', []byte("12 comment=\n"))
			return join(bytes.Repeat(g, 30), endMark)
		}, Limits{Entries: 20}, ErrLimit, "more than 20 members"},
		{"empty name", func(t *testing.T) []byte { return join(rawMember("", '0', nil), endMark) }, Limits{}, ErrUnsafe, "empty name"},
		{"the destination as a file", func(t *testing.T) []byte { return tarball(t, member{name: "./"[:1]}) },
			Limits{}, ErrUnsafe, "destination itself"},
		{"unknown type", func(t *testing.T) []byte { return join(rawMember("x", 'M', nil), endMark) }, Limits{}, ErrUnsafe, "type 'M'"},
	}
}

func small2(t *testing.T) []byte {
	return tarball(t, member{name: "a", body: "123456"}, member{name: "b", body: "1234"})
}

func TestBombs(t *testing.T) {
	for _, b := range bombs() {
		t.Run(b.name, func(t *testing.T) {
			archive := b.archive(t)
			path := filepath.Join(t.TempDir(), "bomb")
			if err := os.WriteFile(path, archive, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := UnpackTo(t.Context(), path, path+".out", UnpackOptions{Limits: b.limits})
			if !errors.Is(err, b.want) || !strings.Contains(err.Error(), b.text) {
				t.Errorf("error %v, want %v with %q", err, b.want, b.text)
			}
			if got := listing(t, filepath.Dir(path)); len(got) != 1 {
				t.Errorf("left %q", got)
			}
		})
	}
}

// TestBombGuard: 10 MB that become 100 GB are stopped at once, ordinary
// compression is not.
func TestBombGuard(t *testing.T) {
	lim := DefaultLimits()
	g := newBombGuard(lim)
	if err := g.add(1<<30, 100<<10); err != nil {
		t.Errorf("a GiB of zeros: %v", err)
	}
	if err := g.add(1<<30, 10<<20); err != nil {
		t.Errorf("2 GiB of 10 MiB: %v", err)
	}
	if err := g.add(1<<30, 10<<20); !errors.Is(err, ErrLimit) {
		t.Errorf("3 GiB of 10 MiB: %v", err)
	}
	g = newBombGuard(lim)
	if err := g.add(1<<40, 1<<40); !errors.Is(err, ErrLimit) {
		t.Errorf("a TiB: %v", err)
	}
	lim.Bytes, lim.Entries = 1<<63-1, 1<<63-1
	if got := streamLimit(lim); got != 1<<63-1 {
		t.Errorf("no limit is %d", got)
	}
}

func TestDirectoriesAreBounded(t *testing.T) {
	var l laterDirs
	d := laterDir{path: strings.Repeat("d", 4000)}
	for range maxLaterBytes / (4000 + 64) {
		if err := l.add(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.add(d); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}
