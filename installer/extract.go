package installer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// copySize is the size of a write.
const copySize = 128 << 10

// extraction is one call of Unpack: archive's members go from in to tree.
type extraction struct {
	in       *stream
	archives *tarStream
	data     io.Reader // the current member's content
	tree     *tree
	closer   *closer
	opts     UnpackOptions
	lim      Limits
	sum      Summary
	buf      []byte // copySize
	odd      []oddLink
}

// unpack does the work of the Unpack functions; archive is for messages.
func unpack(ctx context.Context, r io.Reader, archive, dir string, opts UnpackOptions) (Summary, error) {
	x := &extraction{opts: opts, lim: opts.Limits.withDefaults()}
	err := x.run(ctx, r, dir)
	if err == nil {
		return x.sum, nil
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return x.sum, fmt.Errorf("%s: %w", (&UnpackError{Archive: archive}).where(), cause)
	}
	var ue *UnpackError
	if !errors.As(err, &ue) {
		ue = &UnpackError{Err: err}
	}
	ue.Archive = archive
	return x.sum, ue
}

// run opens both ends, extracts, and closes both ends again.
func (x *extraction) run(ctx context.Context, r io.Reader, dir string) error {
	var err error
	if x.tree, err = openTree(dir); err != nil {
		return err
	}
	defer x.tree.close()
	if x.in, err = newStream(ctx, r, x.lim); err != nil {
		return err
	}
	defer x.in.close()
	x.buf = make([]byte, copySize)
	x.sum.Format = x.in.format

	x.closer = newCloser()
	err = x.members()
	if cerr := x.closer.finish(); err == nil || errors.Is(err, errCloser) {
		err = cerr
	}
	x.report()
	if lerr := x.settleLinks(err != nil); err == nil {
		err = lerr
	}
	// Also after an error: old directories may have been opened up.
	if ferr := x.tree.finish(); err == nil {
		err = ferr
	}
	return err
}

// members extracts all members of all archives in the stream.
func (x *extraction) members() error {
	x.archives = newTarStream(x.in)
	x.data = x.archives.data()
	for {
		hdr, err := x.archives.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := x.member(hdr); err != nil {
			return &UnpackError{Member: hdr.Name, Err: err}
		}
		x.report()
	}
}

// report brings the summary up to date and passes it on.
func (x *extraction) report() {
	x.sum.CompressedBytes, x.sum.DecompressedBytes = x.in.compressed(), x.in.read
	if x.opts.Progress != nil {
		x.opts.Progress(x.sum)
	}
}

// member checks one member and extracts it.
func (x *extraction) member(hdr *tar.Header) error {
	entries := x.sum.Files + x.sum.Dirs + x.sum.Symlinks + x.sum.Hardlinks + x.sum.Skipped
	if entries >= x.lim.Entries {
		return fmt.Errorf("%w: more than %d members", ErrLimit, x.lim.Entries)
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader || hdr.Typeflag == typeLabel {
		return x.skip()
	}
	path, ok, err := cleanName(hdr.Name, x.opts.StripComponents, x.lim)
	if err != nil {
		return err
	}
	if !ok { // "./", or the directory at the top
		if hdr.Typeflag != tar.TypeDir && x.opts.StripComponents == 0 {
			return fmt.Errorf("%w: it is the destination itself, but not a directory", ErrUnsafe)
		}
		return x.skip()
	}
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return x.file(path, hdr)
	case tar.TypeDir:
		x.sum.Dirs++
		return x.tree.makeDir(path, uint32(hdr.Mode), mtimeOf(hdr))
	case tar.TypeSymlink:
		return x.symlink(path, hdr)
	case tar.TypeLink:
		return x.hardlink(path, hdr)
	case tar.TypeChar, tar.TypeBlock:
		return fmt.Errorf("%w: it is a device", ErrUnsafe)
	case tar.TypeFifo:
		return fmt.Errorf("%w: it is a FIFO", ErrUnsafe)
	}
	return fmt.Errorf("%w: its type %q is unknown", ErrUnsafe, hdr.Typeflag)
}

// typeLabel is GNU tar's volume label.
const typeLabel = 'V'

// skip passes over a member that is not extracted.
func (x *extraction) skip() error {
	x.sum.Skipped++
	_, err := io.Copy(io.Discard, x.data)
	return err
}

func mtimeOf(hdr *tar.Header) unix.Timespec {
	return unix.Timespec{Sec: hdr.ModTime.Unix(), Nsec: int64(hdr.ModTime.Nanosecond())}
}

// file extracts a regular file. Sizes are checked before anything is created.
func (x *extraction) file(path string, hdr *tar.Header) error {
	if hdr.Size > x.lim.FileBytes {
		return fmt.Errorf("%w: %d bytes, more than %d for a file", ErrLimit, hdr.Size, x.lim.FileBytes)
	}
	if hdr.Size > x.lim.Bytes-x.sum.Bytes {
		return fmt.Errorf("%w: more than %d bytes in all", ErrLimit, x.lim.Bytes)
	}
	sparse, err := isSparse(hdr)
	if err != nil {
		return err
	}
	fd := -1
	err = x.tree.put(path, func(parent int, base string) (err error) {
		fd, err = unix.Openat(parent, base,
			unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC,
			uint32(hdr.Mode)&0o777&^x.tree.umask)
		return err
	})
	if err != nil {
		return err
	}
	made := openFile{fd: fd, mtime: mtimeOf(hdr), path: path}
	switch {
	case sparse:
		err = x.copySparse(fd, hdr.Size)
	case hdr.Size <= smallFile:
		err = x.read(&made)
	default:
		err = x.copy(fd)
	}
	if err == nil {
		x.sum.Files++
		if !x.closer.add(made) {
			return errCloser
		}
		return nil
	}
	unix.Close(fd)
	if errno, ok := err.(unix.Errno); ok {
		err = &os.PathError{Op: "write", Path: path, Err: errno}
	}
	return err
}

// errCloser says that the closer knows what went wrong.
var errCloser = errors.New("an earlier file could not be written")

// read takes a small member's content, for the closer to write.
func (x *extraction) read(f *openFile) error {
	f.data = x.closer.buffer()
	n, err := readBlock(x.data, f.data[:])
	if err == nil { // full to the brim, and perhaps at the end
		_, err = readBlock(x.data, x.buf[:1])
	}
	if err != io.EOF {
		return err
	}
	f.size = n
	x.sum.Bytes += int64(n)
	return nil
}

// copy writes the member's content to fd.
func (x *extraction) copy(fd int) error {
	for {
		n, err := readBlock(x.data, x.buf)
		if werr := write(fd, x.buf[:n]); werr != nil {
			return werr
		}
		x.sum.Bytes += int64(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		x.report()
	}
}

// readBlock reads until buf is full; unlike io.ReadFull it passes on the reader's
// error, also io.EOF after some bytes.
func readBlock(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var k int
		k, err = r.Read(buf[n:])
		n += k
	}
	return n, err
}

func write(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := unix.Write(fd, p)
		if err != nil && err != unix.EINTR {
			return err
		}
		p = p[max(n, 0):]
	}
	return nil
}
