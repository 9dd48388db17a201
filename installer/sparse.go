package installer

import (
	"archive/tar"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// holeSize is the unit in which zeros become holes.
const holeSize = 4096

// isSparse reports whether a file's data will be presented with holes as zeros.
// Sparse formats that archive/tar does not know would come out garbled.
func isSparse(hdr *tar.Header) (bool, error) {
	if hdr.Typeflag == tar.TypeGNUSparse {
		return true, nil
	}
	rec := hdr.PAXRecords
	if _, star := rec["SCHILY.realsize"]; star {
		return false, fmt.Errorf("%w: a sparse file in star's format", ErrUnsafe)
	}
	major, minor := rec["GNU.sparse.major"], rec["GNU.sparse.minor"]
	_, mapped := rec["GNU.sparse.map"]
	switch major + "." + minor {
	case ".":
		return mapped, nil
	case "0.0", "0.1", "1.0":
		return true, nil
	}
	return false, fmt.Errorf("%w: a sparse file in unknown format %q.%q", ErrUnsafe, major, minor)
}

// copySparse writes the member's content, which is size bytes long, to the empty
// file fd, and leaves out blocks of zeros.
func (x *extraction) copySparse(fd int, size int64) error {
	if err := retry(func() error { return unix.Ftruncate(fd, size) }); err != nil {
		return err
	}
	for at := int64(0); ; {
		reads := x.archives.reads
		n, err := readBlock(x.data, x.buf)
		if x.archives.reads != reads { // else all of it is a hole
			if werr := writeBlocks(fd, x.buf[:n], at); werr != nil {
				return werr
			}
		}
		at += int64(n)
		x.sum.Bytes += int64(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// writeBlocks writes p at offset at, but for blocks of zeros.
func writeBlocks(fd int, p []byte, at int64) error {
	for len(p) > 0 {
		zero := isZero(p[:min(len(p), holeSize)])
		n := min(len(p), holeSize)
		for n < len(p) && isZero(p[n:min(len(p), n+holeSize)]) == zero {
			n = min(len(p), n+holeSize)
		}
		if !zero {
			if err := pwrite(fd, p[:n], at); err != nil {
				return err
			}
		}
		p, at = p[n:], at+int64(n)
	}
	return nil
}

func pwrite(fd int, p []byte, at int64) error {
	for len(p) > 0 {
		n, err := unix.Pwrite(fd, p, at)
		if err != nil && err != unix.EINTR {
			return err
		}
		n = max(n, 0)
		p, at = p[n:], at+int64(n)
	}
	return nil
}
