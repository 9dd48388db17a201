package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is the longest line that our ends accept, in bytes without its LF.
// Real peers send and accept 1,024; a longer line goes only to a peer that
// announced that it takes one.
const (
	MaxLine     = 64 << 10
	MaxPeerLine = 1024
)

// ErrLineTooLong says that a line exceeded MaxLine. The line has been read to
// its LF, so the stream is still in step.
var ErrLineTooLong = errors.New("line is longer than 65536 bytes")

// Reader reads the lines and the data of one end's input. It buffers little, so
// that an idle connection is cheap; large data passes its buffer by.
// A Reader is not safe for concurrent use.
type Reader struct {
	*bufio.Reader
	long []byte // collects a line that does not fit into the buffer
}

// NewReader returns a Reader of r whose buffer holds size bytes (at least 16).
func NewReader(r io.Reader, size int) *Reader {
	return &Reader{Reader: bufio.NewReaderSize(r, size)}
}

// ReadLine returns the next line without its LF and without a CR before it. The
// slice is valid until the next read. A line over MaxLine is drained and gives
// ErrLineTooLong; input that ends inside a line gives io.ErrUnexpectedEOF.
func (r *Reader) ReadLine() ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = r.readLong(line)
	}
	if errors.Is(err, io.EOF) && len(line) > 0 {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// readLong goes on with a line whose beginning filled the buffer.
func (r *Reader) readLong(begin []byte) ([]byte, error) {
	r.long = append(r.long[:0], begin...)
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if len(r.long)+len(part) > MaxLine+1 {
			tooLong = true
		} else {
			r.long = append(r.long, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return r.long, err
		case tooLong:
			return nil, ErrLineTooLong
		}
		return r.long, nil
	}
}
