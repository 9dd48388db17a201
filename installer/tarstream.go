package installer

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
)

// tarStream reads the archives that follow each other in one stream, and sees to
// it that each has an end: archive/tar takes a cut between two members for one.
type tarStream struct {
	in    *stream
	tr    *tar.Reader
	count int64 // headers that were read
	reads int64 // by the tar reader; a hole of a sparse file needs none

	// What the tar reader read in whole blocks since next began. It reads headers
	// so, and the two zero blocks of the end.
	zeros  int             // zero blocks, since the last other
	before int             // zero blocks before the last other
	block  [blockSize]byte // the last other
	again  bool            // block is to be read again
}

func newTarStream(in *stream) *tarStream {
	t := &tarStream{in: in}
	t.tr = tar.NewReader(tarInput{t})
	return t
}

// tarInput is what the tar reader reads from.
type tarInput struct{ t *tarStream }

func (i tarInput) Read(p []byte) (int, error) {
	t := i.t
	t.reads++
	if len(p) != blockSize {
		return t.in.Read(p)
	}
	if t.again {
		t.again = false
		return copy(p, t.block[:]), nil
	}
	n, err := readBlock(t.in, p)
	switch {
	case n < blockSize:
		return n, err
	case isZero(p):
		t.zeros++
	default:
		t.before, t.zeros = t.zeros, 0
		copy(t.block[:], p)
	}
	return n, nil // an error comes again
}

// next returns the next member's header; the data of the one before must have
// been read. It returns io.EOF after the last archive, when nothing else follows.
func (t *tarStream) next() (*tar.Header, error) {
	for {
		t.before, t.zeros = 0, 0
		hdr, err := t.tr.Next()
		if err == nil {
			t.count++
			return hdr, nil
		}
		// A single zero block is an end that some writers make.
		atEnd := err == io.EOF && t.zeros > 0 || err == tar.ErrHeader && t.before > 0
		if !atEnd {
			return nil, t.headerError(err)
		}
		if err := t.nextArchive(err == tar.ErrHeader); err != nil {
			return nil, err
		}
	}
}

// nextArchive skips padding up to another archive's first header, which may have
// been read already. It returns io.EOF where there is none.
func (t *tarStream) nextArchive(haveBlock bool) error {
	for !haveBlock {
		n, err := readBlock(t.in, t.block[:])
		if err != nil && err != io.EOF {
			return err
		}
		haveBlock = !isZero(t.block[:n])
		if n < blockSize {
			if haveBlock {
				return t.trailing()
			}
			return io.EOF
		}
	}
	if !validChecksum(t.block[:]) {
		return t.trailing()
	}
	t.again = true
	t.tr = tar.NewReader(tarInput{t})
	return nil
}

func (t *tarStream) trailing() error {
	return fmt.Errorf("%w: it begins with %q, before byte %d", ErrTrailing, t.block[:8], t.in.read)
}

// headerError says what is wrong with a header.
func (t *tarStream) headerError(err error) error {
	switch {
	case t.in.err != nil && t.in.err != io.EOF:
		return t.in.err
	case err == io.EOF:
		return fmt.Errorf("%w: the mark of its end is missing", ErrTruncated)
	case errors.Is(err, tar.ErrFieldTooLong):
		return fmt.Errorf("%w: a header of over 1 MiB", ErrLimit)
	case err == tar.ErrHeader && t.count == 0:
		return fmt.Errorf("%w: the content (%s) has no tar header", ErrFormat, t.in.format)
	}
	return inputError(err)
}

// data reads the current member's content.
func (t *tarStream) data() io.Reader { return tarData{t} }

type tarData struct{ t *tarStream }

func (d tarData) Read(p []byte) (int, error) {
	n, err := d.t.tr.Read(p)
	if err != nil && err != io.EOF {
		if d.t.in.err != nil && d.t.in.err != io.EOF {
			return n, d.t.in.err
		}
		return n, inputError(err)
	}
	return n, err
}
