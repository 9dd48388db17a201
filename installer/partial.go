package installer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
)

// partial is a file on its way: a temporary name, and the checksum of what is in
// it so far.
type partial struct {
	file  *os.File
	sum   hash.Hash
	size  int64 // bytes written
	total int64 // bytes expected, -1 if not known
	opts  FetchOptions
	buf   []byte
	moved bool // it has its final name
}

// writeError is a failure on our side, which no other server can mend.
type writeError struct{ error }

func (e writeError) Unwrap() error { return e.error }

func newPartial(dest string, opts FetchOptions) (*partial, error) {
	f, err := openPartial(dest)
	if err != nil {
		return nil, err
	}
	return &partial{file: f, sum: sha256.New(), total: -1, opts: opts, buf: make([]byte, 256<<10)}, nil
}

// readFrom appends what one read of r gives; more is false at the end of r.
func (p *partial) readFrom(r io.Reader) (more bool, err error) {
	n, err := r.Read(p.buf)
	if n > 0 {
		if int64(n) > p.opts.MaxSize-p.size {
			return false, writeError{p.tooLarge()}
		}
		p.sum.Write(p.buf[:n])
		if _, werr := p.file.Write(p.buf[:n]); werr != nil {
			return false, writeError{werr}
		}
		p.size += int64(n)
		p.report()
	}
	if err == io.EOF {
		return false, nil
	}
	return err == nil, err
}

func (p *partial) report() {
	if p.opts.Progress != nil {
		p.opts.Progress(p.size, p.total)
	}
}

func (p *partial) tooLarge() error {
	return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, p.opts.MaxSize)
}

// restart forgets what was written.
func (p *partial) restart() error {
	p.sum.Reset()
	p.size, p.total = 0, -1
	if err := p.file.Truncate(0); err != nil {
		return writeError{err}
	}
	if _, err := p.file.Seek(0, io.SeekStart); err != nil {
		return writeError{err}
	}
	return nil
}

func (p *partial) digest() string { return hex.EncodeToString(p.sum.Sum(nil)) }

// verify compares the checksum, if one was given.
func (p *partial) verify() error {
	if got := p.digest(); p.opts.SHA256 != "" && got != p.opts.SHA256 {
		return fmt.Errorf("%w: SHA-256 of the %d bytes is %s, expected %s", ErrChecksum, p.size, got, p.opts.SHA256)
	}
	return nil
}

// publish gives the complete file its mode and its final name.
func (p *partial) publish(dest string) error {
	if err := p.file.Chmod(p.opts.Mode.Perm() &^ os.FileMode(currentUmask())); err != nil {
		return err
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	if err := os.Rename(p.file.Name(), dest); err != nil {
		return err
	}
	p.moved = true
	return syncDir(filepath.Dir(dest))
}

// discard closes the file, and removes it unless it was published.
func (p *partial) discard() {
	p.file.Close()
	if !p.moved {
		os.Remove(p.file.Name())
	}
}
