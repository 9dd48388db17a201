package installer

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// PackOptions says how to pack. The zero value is a good default.
type PackOptions struct {
	// Top is the directory in the archive that holds everything; "" is the packed
	// directory's own name, "." is none.
	Top string
	// Time is the modification time of every member. Default PackTime.
	Time time.Time
	// KeepTimes keeps the files' own times, in whole seconds; those after Time, if
	// it is set, become Time.
	KeepTimes bool
	// NoSums leaves SHA256SUMS beside the archive alone.
	NoSums bool
	// Progress, if not nil, is told how many bytes of content were read so far and
	// how many there were at the start, in the goroutine that called Pack.
	Progress func(done, total int64)
	// Log is told when another process has to be waited for. Default: none.
	Log *slog.Logger
}

// PackTime is the time of members unless PackOptions says otherwise.
var PackTime = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// SourceDateEpoch reads the environment variable SOURCE_DATE_EPOCH, seconds since
// 1970; the zero time stands for none.
func SourceDateEpoch() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	if s == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a number of seconds", s)
	}
	return time.Unix(n, 0), nil
}

// Packed tells what Pack made.
type Packed struct {
	Path      string `json:"path"` // the archive
	Files     int64  `json:"files"`
	Dirs      int64  `json:"dirs"`
	Symlinks  int64  `json:"symlinks"`
	Hardlinks int64  `json:"hardlinks"`
	Bytes     int64  `json:"bytes"`  // of content
	Size      int64  `json:"size"`   // of the archive, bytes
	SHA256    string `json:"sha256"` // of the archive, 64 lower case hexadecimal digits
}

// Pack makes the archive dest of the directory dir, compressed as dest's extension
// says: .tar, .tar.gz, .tar.xz or .tar.zst. The same names, contents, modes and
// links give the same bytes, on every machine: members are sorted, owners are 0,
// times are one (see PackOptions), and neither extended attributes nor set-ID bits
// are recorded. What Unpack would refuse is an error, and so is a file that changes
// meanwhile. The archive appears by one rename when it is on the disk, and then
// SHA256SUMS beside it gets its line; on error neither is changed.
func Pack(ctx context.Context, dir, dest string, opts PackOptions) (Packed, error) {
	res, err := pack(ctx, dir, dest, opts)
	if err != nil {
		return Packed{}, fmt.Errorf("pack %s: %w", dir, err)
	}
	return res, nil
}

func pack(ctx context.Context, dir, dest string, opts PackOptions) (Packed, error) {
	if !plainName(filepath.Base(dest)) {
		return Packed{}, fmt.Errorf("%q is no name for an archive", filepath.Base(dest))
	}
	if err := outside(dir, dest); err != nil {
		return Packed{}, err
	}
	if !opts.NoSums {
		if err := checkUnsigned(filepath.Dir(dest)); err != nil {
			return Packed{}, err
		}
	}
	out, err := openPartial(dest)
	if err != nil {
		return Packed{}, err
	}
	defer os.Remove(out.Name()) // gone already when it was published
	defer out.Close()
	p := &packer{ctx: ctx, opts: opts, links: map[fileID]string{}, buf: make([]byte, copySize)}
	target := &hashedFile{f: out, sum: sha256.New()}
	if err := p.run(dir, target, archiveEnd.FindString(filepath.Base(dest))); err != nil {
		return Packed{}, err
	}
	p.res.Path, p.res.Size, p.res.SHA256 = dest, target.size, hex.EncodeToString(target.sum.Sum(nil))
	return p.res, p.publish(out, dest)
}

// outside refuses an archive that would lie within what it holds.
func outside(dir, dest string) error {
	source, err := os.Stat(dir)
	if err != nil {
		return err
	}
	at, err := filepath.Abs(filepath.Dir(dest))
	if err == nil {
		at, err = filepath.EvalSymlinks(at)
	}
	for err == nil {
		st, serr := os.Stat(at)
		if serr != nil {
			return serr
		}
		if os.SameFile(st, source) {
			return fmt.Errorf("the archive %s would lie within the directory itself", dest)
		}
		if at == "/" {
			return nil
		}
		at = filepath.Dir(at)
	}
	return err
}

// publish gives the archive its name and its line in SHA256SUMS.
func (p *packer) publish(out *os.File, dest string) error {
	if err := out.Chmod(os.FileMode(0o666 &^ currentUmask())); err != nil {
		return err
	}
	if p.opts.NoSums {
		return Replace(out.Name(), dest)
	}
	dir, name := filepath.Dir(dest), filepath.Base(dest)
	unlock, err := lockDir(p.ctx, dir, p.opts.Log)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := readSums(dir)
	if err != nil {
		return err
	}
	if err := Replace(out.Name(), dest); err != nil {
		return err
	}
	all[name] = p.res.SHA256
	return writeChanged(dir, SumsFile, all.text())
}

// hashedFile counts and hashes what is written.
type hashedFile struct {
	f    *os.File
	sum  hash.Hash
	size int64
}

func (h *hashedFile) Write(b []byte) (int, error) {
	n, err := h.f.Write(b)
	h.sum.Write(b[:n])
	h.size += int64(n)
	return n, err
}

// packer is one call of Pack.
type packer struct {
	ctx   context.Context
	opts  PackOptions
	root  *os.Root
	tar   *tar.Writer
	top   string            // "" or with a slash at its end
	links map[fileID]string // names of files with more than one
	total int64
	buf   []byte
	res   Packed
}

type fileID struct{ dev, ino uint64 }

// run writes everything to out.
func (p *packer) run(dir string, out io.Writer, extension string) (err error) {
	if p.root, err = os.OpenRoot(dir); err != nil {
		return err
	}
	defer p.root.Close()
	if err := p.setTop(dir); err != nil {
		return err
	}
	if p.opts.Progress != nil {
		p.total = contentSize(dir)
	}
	zip, err := newCompressor(out, extension)
	if err != nil {
		return err
	}
	buffered := bufio.NewWriterSize(zip, inputSize)
	p.tar = tar.NewWriter(buffered)
	err = p.dir(".")
	if err == nil {
		err = p.tar.Close()
	}
	if err == nil {
		err = buffered.Flush()
	}
	if cerr := zip.Close(); err == nil || errors.Is(err, io.ErrClosedPipe) {
		err = cerr
	}
	return err
}

func (p *packer) setTop(dir string) error {
	top := p.opts.Top
	if top == "" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return err
		}
		top = filepath.Base(abs)
	}
	if top == "." || top == "/" {
		return nil
	}
	clean, _, err := cleanName(top, 0, DefaultLimits())
	if err != nil {
		return fmt.Errorf("top directory %q: %w", top, err)
	}
	p.top = clean + "/"
	return nil
}

// contentSize is for progress only: what cannot be read is an error later.
func contentSize(dir string) (total int64) {
	linked := map[fileID]bool{}
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil
		}
		st, err := e.Info()
		if err != nil {
			return nil
		}
		if id, several := linkID(st); !several {
			total += st.Size()
		} else if !linked[id] {
			linked[id] = true
			total += st.Size()
		}
		return nil
	})
	return total
}

// linkID identifies a file that has several names.
func linkID(st fs.FileInfo) (id fileID, several bool) {
	sys := st.Sys().(*syscall.Stat_t)
	return fileID{sys.Dev, sys.Ino}, sys.Nlink > 1
}
