package chirpd

import (
	"math"

	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// strides are the pieces of a strided read or write: length bytes in all, in pieces of
// size bytes that begin skip bytes apart.
type strides struct{ offset, size, skip, length int64 }

// each calls do with the place of each piece in turn, until it returns an error or
// says that there is no more. Places beyond what a file can have end it too.
func (st strides) each(do func(offset, n int64) (more bool, err error)) error {
	if st.size == 0 {
		return nil
	}
	for at, left := st.offset, st.length; left > 0; {
		n := min(left, st.size)
		if at < 0 || at > math.MaxInt64-n {
			return nil
		}
		more, err := do(at, n)
		if err != nil || !more {
			return err
		}
		left -= n
		at += st.skip // an overflow is negative and found above
	}
	return nil
}

// available is how many bytes of the pieces a file of size bytes has; the first that
// it does not have whole is the last.
func (st strides) available(size int64) (total int64) {
	_ = st.each(func(offset, n int64) (bool, error) {
		there := min(n, max(0, size-offset))
		total += there
		return there == n, nil
	})
	return total
}

func (s *session) sread(r *wire.Sread) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	st := strides{r.Offset, r.StrideLength, r.StrideSkip, min(r.Length, wire.MaxData)}
	st.length = st.available(info.Size)
	w := window{file: f.File, span: outputBuffer}
	if st.skip > w.span {
		w.span = min(st.size, w.span) // nothing between the pieces is of use
	}
	defer w.release()
	if _, err := w.at(st.offset, min(1, st.length)); err != nil {
		return err // before anything is promised
	}
	s.reply(st.length)
	return st.each(func(offset, n int64) (bool, error) {
		for n > 0 && s.out.err == nil {
			p, err := w.at(offset, n)
			if err != nil {
				return false, err
			}
			s.out.write(p)
			offset, n = offset+int64(len(p)), n-int64(len(p))
		}
		return true, s.out.err
	})
}

func (s *session) swrite(r *wire.Swrite) error {
	f, err := s.files.get(r.FD)
	if err != nil {
		return err
	}
	st := strides{r.Offset, r.StrideLength, r.StrideSkip, min(r.Length, wire.MaxData)}
	var done int64
	err = st.each(func(offset, n int64) (bool, error) {
		k, err := s.receivePart(f, offset, n)
		done += k
		return true, err
	})
	return s.wrote(done, err)
}

// window is a piece of a file in memory, for reads of many small parts.
type window struct {
	file   *confine.File
	span   int64 // bytes to read at a time, at most outputBuffer
	buf    *[outputBuffer]byte
	offset int64
	data   []byte
}

// at gives some bytes of the file at offset, at least one and at most n; none if n is
// zero. They are valid until the next call.
func (w *window) at(offset, n int64) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if offset < w.offset || offset >= w.offset+int64(len(w.data)) {
		if w.buf == nil {
			w.buf = outputBuffers.Get().(*[outputBuffer]byte)
		}
		k, err := pread(w.file, w.buf[:w.span], offset)
		if err == nil && k == 0 {
			err = errShrank
		}
		if err != nil {
			return nil, err
		}
		w.offset, w.data = offset, w.buf[:k]
	}
	p := w.data[offset-w.offset:]
	return p[:min(int64(len(p)), n)], nil
}

func (w *window) release() {
	if w.buf != nil {
		outputBuffers.Put(w.buf)
	}
}
