package installer

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

var errChanged = errors.New("it changed while it was packed: try again when nobody writes to it")

// dir packs a directory and everything below it; name is relative to the root.
func (p *packer) dir(name string) error {
	before, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	f, err := p.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := sameObject(f, before); err != nil {
		return memberError(name, err)
	}
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	if member := p.top + strings.TrimPrefix(name+"/", "./"); member != "" {
		if err := p.header(member, before, tar.Header{Typeflag: tar.TypeDir}); err != nil {
			return memberError(name, err)
		}
		p.res.Dirs++
	}
	slices.Sort(names)
	for _, n := range names {
		if err := p.member(path.Join(name, n)); err != nil {
			return err
		}
	}
	return memberError(name, unchanged(f, before))
}

// member packs what has a name in a directory.
func (p *packer) member(name string) error {
	if err := context.Cause(p.ctx); err != nil {
		return err
	}
	st, err := p.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = errChanged
	}
	if err != nil {
		return memberError(name, err)
	}
	switch st.Mode().Type() {
	case fs.ModeDir:
		return p.dir(name)
	case fs.ModeSymlink:
		return memberError(name, p.symlink(name, st))
	case 0:
		return memberError(name, p.file(name, st))
	}
	return memberError(name, fmt.Errorf("it is neither a file nor a directory nor a link (%s): remove it first", st.Mode().Type()))
}

func memberError(name string, err error) error {
	var pe *fs.PathError
	if err == nil || errors.As(err, &pe) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// header writes a member's header, made of what the caller filled in and of st.
func (p *packer) header(name string, st fs.FileInfo, hdr tar.Header) error {
	if _, _, err := cleanName(name, 0, DefaultLimits()); err != nil {
		return err
	}
	hdr.Name, hdr.Mode, hdr.ModTime = name, int64(st.Mode().Perm()), p.time(st)
	return p.tar.WriteHeader(&hdr)
}

func (p *packer) time(st fs.FileInfo) time.Time {
	limit := p.opts.Time
	if p.opts.KeepTimes {
		own := st.ModTime().Truncate(time.Second)
		if limit.IsZero() || own.Before(limit) {
			return own
		}
		return limit
	}
	if limit.IsZero() {
		return PackTime
	}
	return limit
}

// symlink packs a link, unless Unpack would refuse it.
func (p *packer) symlink(name string, st fs.FileInfo) error {
	target, err := p.root.Readlink(name)
	if err != nil {
		return err
	}
	odd, err := checkTarget(name, target)
	if err == nil && odd && !throughDirs(oddLink{name, target}, p.isDir) {
		err = fmt.Errorf("%w: a symbolic link to %q, where \"..\" does not follow a directory", ErrUnsafe, target)
	}
	if err != nil {
		return err
	}
	p.res.Symlinks++
	return p.header(p.top+name, st, tar.Header{Typeflag: tar.TypeSymlink, Linkname: target})
}

// throughDirs reports whether each ".." of a link's target goes up from what
// isDir says to be a directory; it is given clean paths, never the top's.
func throughDirs(l oddLink, isDir func(string) bool) bool {
	at, _ := split(l.path)
	for part := range strings.SplitSeq(l.target, "/") {
		if part == ".." {
			if !isDir(at) {
				return false
			}
			at, _ = split(at)
			continue
		}
		if part != "" && part != "." {
			at = path.Join(at, part)
		}
	}
	return true
}

func (p *packer) isDir(name string) bool {
	st, err := p.root.Lstat(name)
	return err == nil && st.IsDir()
}

// file packs a regular file, or a hard link to one that was packed before.
func (p *packer) file(name string, st fs.FileInfo) error {
	if id, several := linkID(st); several {
		if first, seen := p.links[id]; seen {
			p.res.Hardlinks++
			return p.header(p.top+name, st, tar.Header{Typeflag: tar.TypeLink, Linkname: first})
		}
		p.links[id] = p.top + name
	}
	f, err := p.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := sameObject(f, st); err != nil {
		return err
	}
	if err := p.header(p.top+name, st, tar.Header{Typeflag: tar.TypeReg, Size: st.Size()}); err != nil {
		return err
	}
	if err := p.content(f, st.Size()); err != nil {
		return err
	}
	p.res.Files++
	return unchanged(f, st)
}

// content copies size bytes of f.
func (p *packer) content(f *os.File, size int64) error {
	for left := size; left > 0; {
		if err := context.Cause(p.ctx); err != nil {
			return err
		}
		n, err := f.Read(p.buf[:min(left, int64(len(p.buf)))])
		if err == io.EOF {
			return errChanged
		}
		if err != nil {
			return err
		}
		if _, err := p.tar.Write(p.buf[:n]); err != nil {
			return err
		}
		left -= int64(n)
		p.res.Bytes += int64(n)
		if p.opts.Progress != nil {
			p.opts.Progress(p.res.Bytes, p.total)
		}
	}
	return nil
}

// sameObject makes sure that f is what was looked at, unchanged.
func sameObject(f *os.File, looked fs.FileInfo) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(st, looked) {
		return errChanged
	}
	return nil
}

// unchanged compares with what was there before the content was read.
func unchanged(f *os.File, before fs.FileInfo) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.ModTime().Equal(before.ModTime()) || st.Mode() != before.Mode() ||
		st.Mode().IsRegular() && st.Size() != before.Size() {
		return errChanged
	}
	return nil
}
