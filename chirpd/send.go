package chirpd

import (
	"errors"

	"skeletonkey/chirpd/confine"
)

// errShrank says that a file lost bytes which a reply's header had promised.
var errShrank = errors.New("the file shrank while it was sent")

// sendPart replies with up to n bytes from offset on: fewer at the file's end, and
// none beyond it. It returns how many.
func (s *session) sendPart(f *confine.File, offset, n int64) (int64, error) {
	if n > copyMax {
		info, err := f.Stat()
		if err != nil {
			return 0, err
		}
		if there := info.Size - offset; there > copyMax {
			n = min(n, there)
			return n, s.sendExactly(f, offset, n)
		}
		n = copyMax
	}
	s.replied = true
	got := 0
	err := s.out.data(int(n), func(p []byte) (k int, err error) {
		got, err = pread(f, p, offset)
		return got, err
	})
	if err != nil {
		s.replied = false
	}
	return int64(got), err
}

// sendExactly replies with n bytes that are there. If they are not any more the
// connection has to end: the header has been sent.
func (s *session) sendExactly(f *confine.File, offset, n int64) error {
	s.reply(n)
	sent, err := s.sendUpTo(f, offset, n)
	if err == nil && sent < n {
		err = errShrank
	}
	return err
}

// sendUpTo sends bytes of the file, without a header, until n are sent or the file
// ends.
func (s *session) sendUpTo(f *confine.File, offset, n int64) (int64, error) {
	if s.raw != nil {
		sent, err := s.out.sendfile(s.raw, f, offset, n)
		if !errors.Is(err, errNoSendfile) {
			return sent, err
		}
	}
	return s.copyUpTo(f, offset, n)
}

func (s *session) copyUpTo(f *confine.File, offset, n int64) (int64, error) {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	var sent int64
	for sent < n {
		k, err := pread(f, piece[:min(n-sent, pieceSize)], offset+sent)
		if err != nil {
			return sent, err
		}
		if k == 0 {
			break
		}
		s.out.write(piece[:k])
		sent += int64(k)
		if s.out.err != nil {
			return sent, s.out.err
		}
	}
	return sent, nil
}
