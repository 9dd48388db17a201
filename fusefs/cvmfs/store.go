package cvmfs

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// store is the cache of objects on this node, shared by all processes of its user.
//
//	objects/ab/cdef...  an object's content, without compression, and a trailer
//	tmp/abcdef...       one that is being fetched; whoever holds its lock writes it
//	repos/NAME/         the newest manifest and white-list
//	usage               how many bytes there are, see quota.go
//
// A name in objects/ appears by a rename, complete. The trailer has the object's name,
// length and CRC-32C: what a crash of the machine or a bad disk made of it is noticed
// when a process opens it for the first time, and fetched again.
type store struct {
	place
	quota int64 // bytes; negative: no limit
	log   *slog.Logger
	work  sync.WaitGroup // evictions

	counting sync.Mutex // guards usage, in this process
	usage    *os.File

	mu       sync.Mutex
	checked  map[object]uint64 // guarded by mu: objects that this process found good, with their inode
	evicting bool              // guarded by mu
}

// errAbsent says that an object is not in the store.
var errAbsent = errors.New("not in the cache")

const (
	magic       = "SKcvmfs1"
	trailerSize = len(magic) + hashSize + 4 + 8 + 4
	// maxChecked bounds the memory for what was found good.
	maxChecked = 1 << 17
	// freshUse is how exactly the time of an object's last use is kept.
	freshUse = 10 * time.Minute
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// trailer is what comes after an object's content.
func (o object) trailer(size int64, crc uint32) []byte {
	b := append([]byte(magic), o.sum[:]...)
	b = append(b, byte(o.alg), o.suffix, flag(o.plain), 0)
	b = binary.LittleEndian.AppendUint64(b, uint64(size))
	return binary.LittleEndian.AppendUint32(b, crc)
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// openStore opens the cache at dir, and makes it when there is none.
func openStore(dir string, quota int64, log *slog.Logger) (*store, error) {
	p, err := openPlace(dir)
	if err != nil {
		return nil, err
	}
	s := &store{place: p, quota: quota, log: log, checked: make(map[object]uint64)}
	for _, sub := range []string{"objects", "tmp", "repos"} {
		if err = s.mkdir(sub); err != nil {
			break
		}
	}
	if err == nil {
		s.usage, err = s.place.open("usage", os.O_RDWR|os.O_CREATE)
	}
	if err != nil {
		p.dir.Close()
		return nil, err
	}
	s.sweep()
	return s, nil
}

// close waits for what goes on behind.
func (s *store) close() error {
	s.work.Wait()
	return errors.Join(s.usage.Close(), s.dir.Close())
}

// path is where an object is when it is complete.
func (s *store) path(o object) string {
	name := fileName(o)
	return "objects/" + name[:2] + "/" + name[2:]
}

const plainExt = ".plain"

// fileName is an object's name here: the same bytes are another content with and
// without compression.
func fileName(o object) string {
	if o.plain {
		return o.name() + plainExt
	}
	return o.name()
}

// has tells, without certainty, whether an object is there.
func (s *store) has(o object) bool {
	s.mu.Lock()
	_, ok := s.checked[o]
	s.mu.Unlock()
	return ok || s.exists(s.path(o))
}

// open returns an object's file, which the caller must close, and the size of its
// content: after it comes the trailer. The error is errAbsent when it is not there,
// also when it was there, but damaged.
func (s *store) open(o object) (*os.File, int64, error) {
	f, err := s.place.open(s.path(o), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		s.forget(o)
		return nil, 0, errAbsent
	}
	if err != nil {
		return nil, 0, err
	}
	size, err := s.verify(f, o)
	if err == nil {
		return f, size, nil
	}
	f.Close()
	if errors.Is(err, errAbsent) {
		s.log.Warn("cvmfs: an object in the cache is damaged, and fetched again", "file", s.path(o))
		_ = s.remove(s.path(o))
	}
	return nil, 0, err
}

// verify checks an object's content, unless this process has done it before.
func (s *store) verify(f *os.File, o object) (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return 0, err
	}
	size := st.Size - int64(trailerSize)
	s.mu.Lock()
	ino, ok := s.checked[o]
	s.mu.Unlock()
	if !ok || ino != st.Ino {
		if err := checkContent(f, o, size); err != nil {
			return 0, err
		}
		s.found(o, st.Ino)
	}
	if time.Since(time.Unix(st.Mtim.Unix())) > freshUse {
		now := unix.NsecToTimeval(time.Now().UnixNano())
		_ = unix.Futimes(int(f.Fd()), []unix.Timeval{now, now}) // the order of eviction
	}
	return size, nil
}

// checkContent compares a file with its trailer.
func checkContent(f *os.File, o object, size int64) error {
	if size < 0 {
		return errAbsent
	}
	crc := crc32.New(castagnoli)
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	if _, err := io.CopyBuffer(onlyWriter{crc}, io.NewSectionReader(f, 0, size), buf[:]); err != nil {
		return err
	}
	var have [trailerSize]byte
	if _, err := f.ReadAt(have[:], size); err != nil {
		return err
	}
	if string(have[:]) != string(o.trailer(size, crc.Sum32())) {
		return errAbsent
	}
	return nil
}

// onlyWriter hides what else a writer can do, so that io.CopyBuffer uses the buffer.
type onlyWriter struct{ io.Writer }

const bufferSize = 128 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// found remembers that an object is good.
func (s *store) found(o object, ino uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.checked) >= maxChecked {
		clear(s.checked)
	}
	s.checked[o] = ino
}

func (s *store) forget(o object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checked, o)
}

// fill puts an object into the store: write writes its content, at most once in all
// processes at a time. When another process has put it there meanwhile, write is not
// called. patience is how long the other's file may stay as it is before we no longer
// wait for him.
func (s *store) fill(ctx context.Context, o object, patience time.Duration, write func(contentFile) error) error {
	t, err := s.begin(ctx, o, patience)
	if t == nil || err != nil {
		return err
	}
	defer t.Close() // and with it the lock
	tmp := "tmp/" + filepath.Base(t.Name())
	w := &contentWriter{f: t}
	if err = write(w); err == nil {
		err = w.finish(o)
	}
	if err == nil {
		err = s.publish(t, tmp, o)
	}
	if err != nil {
		_ = s.remove(tmp)
		return err
	}
	s.added(w.size + int64(trailerSize))
	return nil
}

// publish gives a complete file its name.
func (s *store) publish(t *os.File, tmp string, o object) error {
	path := s.path(o)
	err := s.rename(tmp, path)
	if errors.Is(err, os.ErrNotExist) {
		if err = s.mkdir(filepath.Dir(path)); err == nil {
			err = s.rename(tmp, path)
		}
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if unix.Fstat(int(t.Fd()), &st) == nil {
		s.found(o, st.Ino)
	}
	return nil
}

// contentFile takes an object's content; restart drops what it has got.
type contentFile interface {
	io.Writer
	restart() error
}

// contentWriter writes a content, and then the trailer.
type contentWriter struct {
	f    *os.File
	crc  uint32
	size int64
}

func (w *contentWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.crc = crc32.Update(w.crc, castagnoli, p[:n])
	w.size += int64(n)
	return n, err
}

func (w *contentWriter) restart() error {
	if w.size == 0 {
		return nil
	}
	w.crc, w.size = 0, 0
	if _, err := w.f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return w.f.Truncate(0)
}

func (w *contentWriter) finish(o object) error {
	_, err := w.f.Write(o.trailer(w.size, w.crc))
	return err
}

// full says whether the disk, or the user's part of it, is full.
func full(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
