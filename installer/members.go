package installer

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// format is a compression that can be recognised.
type format struct {
	name  string
	magic func(head []byte) bool
	// open returns a decoder whose next call is reset.
	open func(in *bufio.Reader) decoder
}

// decoder decompresses one member (a gzip member, an xz stream, a zstd frame) at
// a time and never reads beyond its end.
type decoder interface {
	// reset begins the member at the input's position.
	reset() error
	// Read returns io.EOF at the end of the member, which was checked.
	io.Reader
	close()
}

// blockSize is the unit of tar archives.
const blockSize = 512

func formats() []format {
	return []format{
		{"gz", hasPrefix("\x1f\x8b"), func(in *bufio.Reader) decoder { return &gzipDecoder{in: in} }},
		{"xz", hasPrefix(xzMagic), func(in *bufio.Reader) decoder { return &xzDecoder{in: in} }},
		{"zst", isZstd, func(in *bufio.Reader) decoder { return &zstdDecoder{frame: zstdFrame{in: in}} }},
		{"bz2", hasPrefix("BZh"), func(in *bufio.Reader) decoder { return &bzip2Decoder{in: in} }},
		{"tar", isTarHeader, func(in *bufio.Reader) decoder { return &plainDecoder{in} }},
	}
}

func hasPrefix(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// sniff finds the compression that in begins with.
func sniff(in *bufio.Reader) (format, error) {
	head, err := in.Peek(blockSize)
	if len(head) == 0 {
		if err == io.EOF {
			err = fmt.Errorf("%w: it is empty", ErrTruncated)
		}
		return format{}, err
	}
	for _, f := range formats() {
		if f.magic(head) {
			return f, nil
		}
	}
	trimmed := bytes.TrimSpace(head)
	if bytes.HasPrefix(trimmed, []byte("<")) {
		return format{}, fmt.Errorf("%w: it looks like a web page", ErrFormat)
	}
	return format{}, fmt.Errorf("%w: it begins with %q", ErrFormat, head[:min(len(head), 8)])
}

// isTarHeader reports whether head is a tar header by its checksum, or the zeros
// with which an archive ends.
func isTarHeader(head []byte) bool {
	if len(head) < blockSize {
		return false
	}
	head = head[:blockSize]
	return isZero(head) || validChecksum(head)
}

// validChecksum computes a header's checksum in both ways that are in use.
func validChecksum(block []byte) bool {
	var unsigned, signed int64
	for i, c := range block {
		if i >= 148 && i < 156 {
			c = ' '
		}
		unsigned += int64(c)
		signed += int64(int8(c))
	}
	var want int64
	for _, c := range bytes.Trim(block[148:156], " \x00") {
		if c < '0' || c > '7' {
			return false
		}
		want = want<<3 | int64(c-'0')
	}
	return want == unsigned || want == signed
}

var zeros [32 << 10]byte

// isZero reports whether p, at most 32 KiB, is all zeros.
func isZero(p []byte) bool { return bytes.Equal(p, zeros[:len(p)]) }

// members reads the concatenated members of a compressed file, and checks what
// follows the last: nothing or zeros.
type members struct {
	in     *bufio.Reader
	format format
	dec    decoder
	inside bool // within a member
}

func (m *members) Read(p []byte) (int, error) {
	for {
		if !m.inside {
			if err := m.begin(); err != nil {
				return 0, err
			}
		}
		n, err := m.dec.Read(p)
		if err == io.EOF {
			m.inside, err = false, nil
		}
		if n > 0 || err != nil {
			return n, inputError(err)
		}
	}
}

// begin starts the next member, or returns io.EOF where there is none.
func (m *members) begin() error {
	if m.dec == nil {
		m.dec = m.format.open(m.in)
	} else if err := m.skipPadding(); err != nil {
		return err
	}
	if err := m.dec.reset(); err != nil {
		return inputError(noEOF(err))
	}
	m.inside = true
	return nil
}

// skipPadding skips zeros up to the next member.
func (m *members) skipPadding() error {
	for {
		head, err := m.in.Peek(8)
		if len(head) == 0 {
			return err
		}
		if head[0] != 0 {
			if m.format.magic(head) {
				return nil
			}
			return fmt.Errorf("%w: %q after the compressed data", ErrTrailing, head)
		}
		if err := skipZeros(m.in); err != nil {
			return err
		}
	}
}

// skipZeros discards the zeros at the front of in.
func skipZeros(in *bufio.Reader) error {
	for {
		if _, err := in.Peek(1); err != nil {
			return err
		}
		head, _ := in.Peek(min(in.Buffered(), len(zeros)))
		n := len(head)
		if !isZero(head) {
			n = bytes.IndexFunc(head, func(r rune) bool { return r != 0 })
		}
		in.Discard(n)
		if n < len(head) {
			return nil
		}
	}
}

func (m *members) close() {
	if m.dec != nil {
		m.dec.close()
	}
}

// noEOF is for places where the input must not end.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// plainDecoder passes an uncompressed archive through; its end is the tar
// reader's to judge.
type plainDecoder struct{ in *bufio.Reader }

func (d *plainDecoder) reset() error               { return nil }
func (d *plainDecoder) Read(p []byte) (int, error) { return d.in.Read(p) }
func (d *plainDecoder) close()                     {}

type gzipDecoder struct {
	in *bufio.Reader
	z  gzip.Reader
}

func (d *gzipDecoder) reset() error {
	err := d.z.Reset(d.in)
	d.z.Multistream(false)
	return err
}

func (d *gzipDecoder) Read(p []byte) (int, error) { return d.z.Read(p) }
func (d *gzipDecoder) close()                     {}

// bzip2Decoder leaves concatenated streams to the library, which does not stop
// between them; what the library makes of padding is told from its last bytes.
type bzip2Decoder struct {
	in *bufio.Reader
	z  io.Reader

	tail [16]byte // the last bytes read, as a ring
	n    int      // how many were read
}

func (d *bzip2Decoder) reset() error {
	d.z = bzip2.NewReader(d)
	return nil
}

// ReadByte is how the library reads.
func (d *bzip2Decoder) ReadByte() (byte, error) {
	b, err := d.in.ReadByte()
	if err == nil {
		d.tail[d.n%len(d.tail)] = b
		d.n++
	}
	return b, err
}

// Read tells padding behind the last stream from damage.
func (d *bzip2Decoder) Read(p []byte) (int, error) {
	n, err := d.z.Read(p)
	switch err {
	case bzip2.StructuralError("bad magic value in continuation file"):
		if d.last(1) == 0 && d.last(2) == 0 {
			return n, io.EOF
		}
		return n, fmt.Errorf("%w: %q after the compressed data", ErrTrailing, []byte{d.last(2), d.last(1)})
	case io.ErrUnexpectedEOF: // after a single byte of padding
		if d.last(1) == 0 && d.trailerBefore(1) {
			return n, io.EOF
		}
	}
	return n, err
}

// last returns the i-th last byte, 1 for the last.
func (d *bzip2Decoder) last(i int) byte {
	return d.tail[(d.n+len(d.tail)-i)%len(d.tail)]
}

// trailerBefore reports whether the bytes before the last k are a stream's
// trailer: a magic of 48 bits at any bit, a CRC of 32 bits, zero bits up to the
// byte's end.
func (d *bzip2Decoder) trailerBefore(k int) bool {
	const magic, mask = 0x177245385090, 1<<48 - 1
	var hi, lo uint64
	for i := 11; i > 0; i-- {
		hi, lo = hi<<8|lo>>56, lo<<8|uint64(d.last(k+i))
	}
	for pad := range 8 {
		if lo&(1<<pad-1) == 0 && (lo>>(pad+32)|hi<<(32-pad))&mask == magic {
			return true
		}
	}
	return false
}

func (d *bzip2Decoder) close() {}
