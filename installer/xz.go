package installer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// MaxDictionary is the largest dictionary of an xz block that is accepted, in
// bytes: that of `xz -9`, 64 MiB.
const MaxDictionary = 64 << 20

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzFooterMagic = "YZ"
	xzLZMA2       = 0x21
)

// xzDecoder reads one stream of the xz container, version 1.1.0 of its
// specification, with LZMA2 as the only filter. It keeps to the container itself
// because the dictionary must be known before it is allocated, and the stream's
// end before anything after it is read.
type xzDecoder struct {
	in    *bufio.Reader
	check byte // type of the blocks' checks

	block *xzBlock // nil between blocks
	index xzIndex  // of the blocks that were read
	done  bool
}

// xzBlock is a block that is being read.
type xzBlock struct {
	headerSize int64
	// As the header says, -1 where it does not.
	compressed, uncompressed int64

	lzma io.Reader
	in   countingReader // below lzma
	out  int64
	sum  hash.Hash // nil for none
}

// xzIndex sums up the sizes of a stream's blocks, to be compared with its index.
type xzIndex struct {
	count uint64
	sum   hash.Hash
}

func newXZIndex() xzIndex { return xzIndex{sum: sha256.New()} }

func (x *xzIndex) add(unpadded, uncompressed uint64) {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], unpadded)
	binary.LittleEndian.PutUint64(b[8:], uncompressed)
	x.sum.Write(b[:])
	x.count++
}

// countingReader counts, and keeps ReadByte within the package.
type countingReader struct {
	r *bufio.Reader
	n int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *countingReader) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// reset reads the stream header.
func (d *xzDecoder) reset() error {
	var h [12]byte
	if _, err := io.ReadFull(d.in, h[:]); err != nil {
		return err
	}
	if h[6] != 0 || h[7]&0xf0 != 0 || crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return errors.New("xz: bad stream header")
	}
	d.check = h[7]
	if _, err := newXZCheck(d.check); err != nil {
		return err
	}
	d.block, d.done, d.index = nil, false, newXZIndex()
	return nil
}

// newXZCheck returns the hash of a check type, nil for none.
func newXZCheck(kind byte) (hash.Hash, error) {
	switch kind {
	case 0:
		return nil, nil
	case 1:
		return crc32.NewIEEE(), nil
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA)), nil
	case 10:
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("xz: unknown check type %d", kind)
}

func (d *xzDecoder) Read(p []byte) (int, error) {
	for !d.done {
		if d.block == nil {
			if err := d.startBlock(); err != nil {
				return 0, noEOF(err)
			}
			continue
		}
		n, err := d.block.read(p)
		if err == io.EOF {
			err = d.finishBlock()
		}
		if n > 0 || err != nil {
			return n, noEOF(err)
		}
	}
	return 0, io.EOF
}

// read returns decompressed bytes of the block.
func (b *xzBlock) read(p []byte) (int, error) {
	n, err := b.lzma.Read(p)
	b.out += int64(n)
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	if b.uncompressed >= 0 && b.out > b.uncompressed || b.compressed >= 0 && b.in.n > b.compressed {
		return n, errors.New("xz: a block is longer than its header says")
	}
	return n, err
}

// startBlock reads the next block's header, or the index and the footer.
func (d *xzDecoder) startBlock() error {
	size, err := d.in.ReadByte()
	if err != nil {
		return err
	}
	if size == 0 {
		d.done = true
		return d.readIndex()
	}
	h := make([]byte, (int(size)+1)*4)
	h[0] = size
	if _, err := io.ReadFull(d.in, h[1:]); err != nil {
		return err
	}
	body := h[:len(h)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(h[len(body):]) {
		return errors.New("xz: bad block header")
	}
	b := &xzBlock{headerSize: int64(len(h)), in: countingReader{r: d.in}}
	dict, err := b.parseHeader(body[1:])
	if err != nil {
		return err
	}
	if b.sum, err = newXZCheck(d.check); err != nil {
		return err
	}
	b.lzma, err = lzma.Reader2Config{DictCap: dict}.NewReader2(&b.in)
	d.block = b
	return err
}

// parseHeader reads a block header after its size, and returns the capacity of
// the dictionary.
func (b *xzBlock) parseHeader(h []byte) (int, error) {
	bad := errors.New("xz: bad block header")
	flags, r := h[0], bytes.NewReader(h[1:])
	if flags&0x3c != 0 {
		return 0, bad
	}
	b.compressed, b.uncompressed = -1, -1
	for _, f := range []struct {
		bit  byte
		size *int64
	}{{0x40, &b.compressed}, {0x80, &b.uncompressed}} {
		if flags&f.bit != 0 {
			v, err := binary.ReadUvarint(r)
			if err != nil || v > 1<<62 {
				return 0, bad
			}
			*f.size = int64(v)
		}
	}
	id, err := binary.ReadUvarint(r)
	if err != nil {
		return 0, bad
	}
	if id != xzLZMA2 || flags&3 != 0 {
		return 0, fmt.Errorf("xz: filter %#x is not supported: compress again without it", id)
	}
	props := make([]byte, 2)
	if _, err := io.ReadFull(r, props); err != nil || props[0] != 1 || props[1] > 40 {
		return 0, bad
	}
	if rest := h[len(h)-r.Len():]; !isZero(rest) {
		return 0, bad
	}
	return b.dictionary(props[1])
}

// dictionary decodes the dictionary's capacity; no more is needed than the block
// is long.
func (b *xzBlock) dictionary(prop byte) (int, error) {
	size, err := lzma.DecodeDictCap(prop)
	if err != nil {
		return 0, err
	}
	if b.uncompressed >= 0 {
		size = min(size, b.uncompressed)
	}
	if size > MaxDictionary {
		return 0, fmt.Errorf("%w: the xz dictionary of %d MiB is larger than %d MiB",
			ErrLimit, size>>20, MaxDictionary>>20)
	}
	return int(max(size, lzma.MinDictCap)), nil
}

// finishBlock checks sizes, padding and check of the block that was read.
func (d *xzDecoder) finishBlock() error {
	b := d.block
	d.block = nil
	if b.uncompressed >= 0 && b.out != b.uncompressed || b.compressed >= 0 && b.in.n != b.compressed {
		return errors.New("xz: a block is shorter than its header says")
	}
	var want []byte
	if b.sum != nil {
		want = b.sum.Sum(nil)
		if d.check != 10 { // the CRCs are little endian
			for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
				want[i], want[j] = want[j], want[i]
			}
		}
	}
	d.index.add(uint64(b.headerSize+b.in.n)+uint64(len(want)), uint64(b.out))
	tail := make([]byte, (4-b.in.n%4)%4+int64(len(want)))
	if _, err := io.ReadFull(d.in, tail); err != nil {
		return noEOF(err)
	}
	pad := len(tail) - len(want)
	if !isZero(tail[:pad]) || !bytes.Equal(tail[pad:], want) {
		return errors.New("xz: a block's check does not match")
	}
	return nil
}

// readIndex reads the index, whose first byte is gone, and the footer.
func (d *xzDecoder) readIndex() error {
	in := &countingReader{r: d.in, n: 1}
	sum := crc32.NewIEEE()
	sum.Write([]byte{0})
	r := &hashedBytes{in, sum}
	count, err := binary.ReadUvarint(r)
	if err != nil {
		return err
	}
	if count != d.index.count {
		return errors.New("xz: the index does not match the blocks")
	}
	found := newXZIndex()
	for range count {
		unpadded, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		size, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		found.add(unpadded, size)
	}
	if !bytes.Equal(found.sum.Sum(nil), d.index.sum.Sum(nil)) {
		return errors.New("xz: the index does not match the blocks")
	}
	for in.n%4 != 0 {
		b, err := r.ReadByte()
		if err != nil {
			return err
		}
		if b != 0 {
			return errors.New("xz: bad index padding")
		}
	}
	return d.readFooter(in.n, sum.Sum32())
}

// readFooter checks the index's CRC and the footer.
func (d *xzDecoder) readFooter(indexSize int64, indexSum uint32) error {
	var f [16]byte
	if _, err := io.ReadFull(d.in, f[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	footer := f[4:]
	if le.Uint32(f[:]) != indexSum || le.Uint32(footer) != crc32.ChecksumIEEE(footer[4:10]) ||
		string(footer[10:]) != xzFooterMagic || footer[8] != 0 || footer[9] != d.check ||
		(int64(le.Uint32(footer[4:]))+1)*4 != indexSize+4 {
		return errors.New("xz: bad index or footer")
	}
	return nil
}

// hashedBytes feeds what it reads to a hash.
type hashedBytes struct {
	io.ByteReader
	sum hash.Hash
}

func (h *hashedBytes) ReadByte() (byte, error) {
	b, err := h.ByteReader.ReadByte()
	if err == nil {
		h.sum.Write([]byte{b})
	}
	return b, err
}

func (d *xzDecoder) close() {}
