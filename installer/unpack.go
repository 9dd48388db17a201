package installer

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Limits bounds what one archive may do. A zero field means its default; use a
// huge value for no limit.
type Limits struct {
	// Bytes is the sum of the members' sizes, holes of sparse files included.
	// Default 256 GiB. The decompressed stream may exceed it by 4 KiB for each of
	// Entries, for headers.
	Bytes int64
	// FileBytes is the size of one member, holes included. Default 64 GiB.
	FileBytes int64
	// Entries is the number of members. Default 2,000,000.
	Entries int64
	// PathBytes is the length of a member's name in bytes. Default and most 4095.
	PathBytes int
	// Depth is the number of components of a member's name. Default 256.
	Depth int
	// Ratio is how many times longer the decompressed stream may be than what was
	// read of the compressed one; it counts from RatioFrom bytes on. Default 250.
	Ratio int64
	// RatioFrom is the decompressed length below which Ratio does not matter.
	// Default 1 GiB.
	RatioFrom int64
}

// DefaultLimits returns the limits that zero fields stand for.
func DefaultLimits() Limits {
	return Limits{
		Bytes: 256 << 30, FileBytes: 64 << 30, Entries: 2_000_000,
		PathBytes: unix.PathMax - 1, Depth: 256, Ratio: 250, RatioFrom: 1 << 30,
	}
}

func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct{ v, def *int64 }{
		{&l.Bytes, &d.Bytes}, {&l.FileBytes, &d.FileBytes}, {&l.Entries, &d.Entries},
		{&l.Ratio, &d.Ratio}, {&l.RatioFrom, &d.RatioFrom},
	} {
		if *f.v <= 0 {
			*f.v = *f.def
		}
	}
	if l.PathBytes <= 0 || l.PathBytes > d.PathBytes {
		l.PathBytes = d.PathBytes
	}
	if l.Depth <= 0 {
		l.Depth = d.Depth
	}
	return l
}

// UnpackOptions says how to unpack. The zero value is a good default.
type UnpackOptions struct {
	// StripComponents drops that many leading components of each name and of each
	// hard link's target ("./" does not count). A member with no more is skipped.
	StripComponents int
	// Limits bounds the archive's size and shape.
	Limits Limits
	// Replace lets UnpackTo exchange an existing directory for the new one in one
	// step. Without it an existing name is an error (fs.ErrExist).
	Replace bool
	// NoSync lets UnpackTo publish without waiting for the disk: right for a
	// scratch directory, which does not outlive a crash of the machine anyway.
	NoSync bool
	// Progress, if not nil, is told the state after each member and within long
	// ones, in the goroutine that called Unpack.
	Progress func(Summary)
}

// Summary counts what was unpacked.
type Summary struct {
	Format                             string // "tar", "gz", "xz", "zst" or "bz2"
	Files, Dirs, Symlinks, Hardlinks   int64
	Skipped                            int64 // global headers, labels, names stripped away
	Bytes                              int64 // members' sizes, holes included
	CompressedBytes, DecompressedBytes int64 // of the stream, as far as it was read
}

// Unpack extracts the tar archive that r yields into the existing directory dir.
// The compression is recognised by content. On error dir may hold a part of the
// archive: unpack into a temporary directory, or use UnpackTo. The error is an
// *UnpackError, or ctx's. Unpack waits for a running r.Read to return, also when
// ctx ends; it reads r to its end when it succeeds, and does not close it.
func Unpack(ctx context.Context, r io.Reader, dir string, opts UnpackOptions) (Summary, error) {
	return unpack(ctx, r, "", dir, opts)
}

// UnpackFile is Unpack for an archive in a file.
func UnpackFile(ctx context.Context, archive, dir string, opts UnpackOptions) (Summary, error) {
	f, err := openRegular(archive)
	if err != nil {
		return Summary{}, &UnpackError{Archive: archive, Err: err}
	}
	defer f.Close()
	return unpack(ctx, f, archive, dir, opts)
}

// UnpackTo extracts archive into a private directory beside dir, and publishes
// that as dir, with mode 0777 masked by the umask, by one rename when it is
// complete. On error nothing is left, and dir is as it was.
func UnpackTo(ctx context.Context, archive, dir string, opts UnpackOptions) (Summary, error) {
	if _, err := os.Lstat(dir); err == nil && !opts.Replace {
		return Summary{}, &UnpackError{Archive: archive, Err: existsError("unpack", dir)}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), tempPattern(dir))
	if err != nil {
		return Summary{}, &UnpackError{Archive: archive, Err: err}
	}
	sum, err := UnpackFile(ctx, archive, tmp, opts)
	if err == nil {
		if err = publishTree(tmp, dir, opts); err != nil {
			err = &UnpackError{Archive: archive, Err: err}
		}
	}
	if err != nil {
		return sum, errors.Join(err, RemoveTree(tmp))
	}
	return sum, nil
}

// publishTree gives the private directory tmp its public mode and name.
func publishTree(tmp, dir string, opts UnpackOptions) error {
	if err := os.Chmod(tmp, os.FileMode(0o777&^currentUmask())); err != nil {
		return err
	}
	return publish(tmp, dir, opts.Replace, !opts.NoSync)
}
