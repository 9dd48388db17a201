package installer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
)

// CheckArchive reads an archive to its end and refuses what Unpack would refuse,
// without writing anything. The error is an *UnpackError, or ctx's.
func CheckArchive(ctx context.Context, archive string, opts UnpackOptions) (Summary, error) {
	f, err := openRegular(archive)
	if err != nil {
		return Summary{}, &UnpackError{Archive: archive, Err: err}
	}
	defer f.Close()
	c := &checker{opts: opts, lim: opts.Limits.withDefaults(), seed: maphash.MakeSeed(), kinds: map[uint64]byte{}}
	err = c.run(ctx, f)
	if err == nil {
		return c.sum, nil
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return c.sum, fmt.Errorf("check %s: %w", archive, cause)
	}
	var ue *UnpackError
	if !errors.As(err, &ue) {
		ue = &UnpackError{Err: err}
	}
	ue.Archive = archive
	return c.sum, ue
}

// checker is one call of CheckArchive. It keeps the kind of each path by the
// path's hash, so that millions of them fit.
type checker struct {
	opts  UnpackOptions
	lim   Limits
	in    *stream
	sum   Summary
	seed  maphash.Seed
	kinds map[uint64]byte
	odd   []oddLink
	buf   []byte
}

const (
	kindFile = iota + 1 // 0 is unknown
	kindDir
	kindLink
)

func (c *checker) kind(path string) byte { return c.kinds[maphash.String(c.seed, path)] }

func (c *checker) set(path string, kind byte) { c.kinds[maphash.String(c.seed, path)] = kind }

func (c *checker) run(ctx context.Context, r io.Reader) (err error) {
	if c.in, err = newStream(ctx, r, c.lim); err != nil {
		return err
	}
	defer c.in.close()
	c.sum.Format, c.buf = c.in.format, make([]byte, copySize)
	archives := newTarStream(c.in)
	for {
		hdr, err := archives.next()
		if err == io.EOF {
			return c.settle()
		}
		if err != nil {
			return err
		}
		if err := c.member(hdr, archives.data()); err != nil {
			return &UnpackError{Member: hdr.Name, Err: err}
		}
		c.report()
	}
}

func (c *checker) report() {
	c.sum.CompressedBytes, c.sum.DecompressedBytes = c.in.compressed(), c.in.read
	if c.opts.Progress != nil {
		c.opts.Progress(c.sum)
	}
}

// member checks one member's header and reads its content.
func (c *checker) member(hdr *tar.Header, data io.Reader) error {
	if c.sum.Files+c.sum.Dirs+c.sum.Symlinks+c.sum.Hardlinks+c.sum.Skipped >= c.lim.Entries {
		return fmt.Errorf("%w: more than %d members", ErrLimit, c.lim.Entries)
	}
	if hdr.Typeflag == tar.TypeXGlobalHeader || hdr.Typeflag == typeLabel {
		c.sum.Skipped++
		return c.discard(data)
	}
	path, ok, err := cleanName(hdr.Name, c.opts.StripComponents, c.lim)
	if err != nil {
		return err
	}
	if !ok {
		if hdr.Typeflag != tar.TypeDir && c.opts.StripComponents == 0 {
			return fmt.Errorf("%w: it is the destination itself, but not a directory", ErrUnsafe)
		}
		c.sum.Skipped++
		return c.discard(data)
	}
	if err := c.parents(path); err != nil {
		return err
	}
	switch hdr.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		return c.file(path, hdr, data)
	case tar.TypeDir:
		c.sum.Dirs++
		c.set(path, kindDir)
		return nil
	case tar.TypeSymlink:
		return c.symlink(path, hdr)
	case tar.TypeLink:
		return c.hardlink(path, hdr)
	}
	return fmt.Errorf("%w: its type %q is a device, a FIFO or unknown", ErrUnsafe, hdr.Typeflag)
}

// parents makes sure that path's parents are directories, and makes them such.
func (c *checker) parents(path string) error {
	if c.kind(path) == kindDir {
		return nil
	}
	for dir, _ := split(path); dir != ""; dir, _ = split(dir) {
		switch c.kind(dir) {
		case kindDir:
			return nil
		case kindLink:
			return fmt.Errorf("%w: its parent %q is a symbolic link", ErrUnsafe, dir)
		case kindFile:
			return fmt.Errorf("%w: its parent %q is not a directory", ErrUnsafe, dir)
		}
		c.set(dir, kindDir)
	}
	return nil
}

// replace gives path a kind other than a directory's.
func (c *checker) replace(path string, kind byte) error {
	if c.kind(path) == kindDir {
		return errors.New("a directory is in the way")
	}
	c.set(path, kind)
	return nil
}

func (c *checker) file(path string, hdr *tar.Header, data io.Reader) error {
	if hdr.Size > c.lim.FileBytes || hdr.Size > c.lim.Bytes-c.sum.Bytes {
		return fmt.Errorf("%w: %d bytes, with %d so far", ErrLimit, hdr.Size, c.sum.Bytes)
	}
	if _, err := isSparse(hdr); err != nil {
		return err
	}
	if err := c.replace(path, kindFile); err != nil {
		return err
	}
	c.sum.Bytes += hdr.Size
	c.sum.Files++
	return c.discard(data)
}

func (c *checker) discard(data io.Reader) error {
	for {
		if _, err := readBlock(data, c.buf); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		c.report()
	}
}

func (c *checker) symlink(path string, hdr *tar.Header) error {
	odd, err := checkTarget(path, hdr.Linkname)
	if err != nil {
		return err
	}
	if odd {
		if len(c.odd) == maxOddLinks {
			return fmt.Errorf("%w: over %d links with \"..\" after a name", ErrLimit, maxOddLinks)
		}
		c.odd = append(c.odd, oddLink{path, hdr.Linkname})
	}
	c.sum.Symlinks++
	return c.replace(path, kindLink)
}

func (c *checker) hardlink(path string, hdr *tar.Header) error {
	target, ok, err := cleanName(hdr.Linkname, c.opts.StripComponents, c.lim)
	switch {
	case err != nil:
		return fmt.Errorf("hard link to %q: %w", hdr.Linkname, err)
	case !ok || target == path || c.kind(target) != kindFile:
		return fmt.Errorf("%w: a hard link to %q, which is no other file of the archive", ErrUnsafe, hdr.Linkname)
	}
	c.sum.Hardlinks++
	return c.replace(path, kindFile)
}

// settle checks the links whose ".." must go up from directories.
func (c *checker) settle() error {
	for _, l := range c.odd {
		if c.kind(l.path) == kindLink && !throughDirs(l, func(dir string) bool { return c.kind(dir) == kindDir }) {
			return &UnpackError{Member: l.path, Err: fmt.Errorf(
				"%w: a symbolic link to %q, where \"..\" does not follow a directory", ErrUnsafe, l.target)}
		}
	}
	return nil
}
