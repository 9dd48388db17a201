package installer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MaxWindow is the largest window of a zstd frame that is accepted, in bytes:
// that of `zstd --ultra -22` and `--long`, 128 MiB.
const MaxWindow = 128 << 20

// zstdDecoder decompresses one frame at a time. It decodes in the goroutine that
// calls it, which is the stream's: extraction goes on meanwhile in another.
type zstdDecoder struct {
	frame zstdFrame
	z     *zstd.Decoder
	empty bool // within a skippable frame
}

// isZstd recognises a frame, or a skippable frame, which holds no data.
func isZstd(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")) || isSkippable(head)
}

func isSkippable(head []byte) bool {
	return len(head) >= 4 && head[0]&0xf0 == 0x50 && string(head[1:4]) == "\x2a\x4d\x18"
}

func (d *zstdDecoder) reset() error {
	head, err := d.frame.in.Peek(8)
	d.empty = isSkippable(head)
	if d.empty {
		if err != nil {
			return err
		}
		_, err = io.CopyN(io.Discard, d.frame.in, 8+int64(binary.LittleEndian.Uint32(head[4:])))
		return err
	}
	d.frame.state, d.frame.left = zstdHeader, 0
	if d.z != nil {
		return d.z.Reset(&d.frame)
	}
	d.z, err = zstd.NewReader(&d.frame, zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(MaxWindow))
	return err
}

func (d *zstdDecoder) Read(p []byte) (int, error) {
	if d.empty {
		return 0, io.EOF
	}
	n, err := d.z.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		err = fmt.Errorf("%w: the zstd window is larger than %d MiB", ErrLimit, MaxWindow>>20)
	}
	if err == io.EOF && !d.frame.done() { // the library takes a cut at the front for no frame
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (d *zstdDecoder) close() {
	if d.z != nil {
		d.z.Close()
	}
}

// zstdFrame yields the bytes of one frame and then io.EOF, so that what follows
// the frame stays in the input. It reads lengths only; the decoder judges.
type zstdFrame struct {
	in       *bufio.Reader
	state    zstdState
	checksum bool
	left     int64 // bytes of the current piece that are still to be passed on
}

// zstdState is the kind of piece that comes next.
type zstdState int

const (
	zstdHeader zstdState = iota
	zstdBlock
	zstdChecksum
	zstdDone
)

func (f *zstdFrame) Read(p []byte) (int, error) {
	for f.left == 0 {
		if f.done() {
			return 0, io.EOF
		}
		if err := f.advance(); err != nil {
			return 0, noEOF(err)
		}
	}
	n, err := f.in.Read(p[:min(int64(len(p)), f.left)])
	f.left -= int64(n)
	return n, noEOF(err)
}

// done reports whether the whole frame was read.
func (f *zstdFrame) done() bool { return f.state == zstdDone && f.left == 0 }

// advance finds the length of the next piece.
func (f *zstdFrame) advance() error {
	switch f.state {
	case zstdHeader:
		head, err := f.in.Peek(5)
		if err != nil {
			return err
		}
		f.left, f.checksum = zstdHeaderSize(head[4]), head[4]&4 != 0
		f.state = zstdBlock
	case zstdBlock:
		head, err := f.in.Peek(3)
		if err != nil {
			return err
		}
		v := uint32(head[0]) | uint32(head[1])<<8 | uint32(head[2])<<16
		f.left = 3 + int64(v>>3)
		if v>>1&3 == 1 { // one byte, repeated
			f.left = 4
		}
		if v&1 != 0 {
			f.state = zstdDone
			if f.checksum {
				f.state = zstdChecksum
			}
		}
	case zstdChecksum:
		f.left, f.state = 4, zstdDone
	}
	return nil
}

// zstdHeaderSize returns a frame header's length, magic included, from its
// descriptor byte.
func zstdHeaderSize(descriptor byte) int64 {
	size := int64(4 + 1)
	single := descriptor&0x20 != 0
	if !single {
		size++ // window descriptor
	}
	size += [4]int64{0, 1, 2, 4}[descriptor&3] // dictionary
	switch descriptor >> 6 {
	case 0:
		if single {
			size++
		}
	case 1:
		size += 2
	case 2:
		size += 4
	case 3:
		size += 8
	}
	return size
}
