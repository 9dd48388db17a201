package chirpd

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// pieceSize is how much of a request's data is taken at a time, in bytes.
const pieceSize = 1 << 20

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// deadline is a time limit that is renewed at every step without asking the system
// for it each time: it is exact to an eighth of its span.
type deadline struct {
	span time.Duration
	set  time.Time
}

// due says whether the connection's deadline has to be set anew, and to what.
func (d *deadline) due() (time.Time, bool) {
	now := time.Now()
	if d.set.Sub(now) > d.span-d.span/8 {
		return d.set, false
	}
	d.set = now.Add(d.span)
	return d.set, true
}

// Read is the only place that reads from the connection. All replies are sent before
// it, as the client may wait for them before it sends more.
func (s *session) Read(p []byte) (int, error) {
	s.dropNear()
	if err := s.out.flush(); err != nil {
		return 0, err
	}
	if err := s.beginWait(); err != nil {
		return 0, err
	}
	s.tally()
	n, err := s.conn.Read(p)
	s.received += int64(n)
	return n, s.endWait(err)
}

// beginWait sets the limit for a read. A server that stops ends the wait for the next
// request.
func (s *session) beginWait() error {
	if s.phase == authenticating {
		return nil // one limit for all of it
	}
	span := s.srv.conf.StallTimeout
	if s.phase == betweenRequests {
		span = s.srv.conf.IdleTimeout
	}
	if s.limit.span != span {
		s.limit = deadline{span: span}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase == betweenRequests {
		s.waiting = true
		if !s.lastCall.IsZero() {
			return s.conn.SetReadDeadline(s.lastCall)
		}
	}
	if t, due := s.limit.due(); due {
		return s.conn.SetReadDeadline(t)
	}
	return nil
}

func (s *session) endWait(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting && !s.lastCall.IsZero() {
		s.limit.set = time.Time{} // data of a request has its own
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = errStopped
		}
	}
	s.waiting = false
	return err
}

// takeBody reads exactly len(p) bytes of the request's data.
func (s *session) takeBody(p []byte) error {
	n, err := io.ReadFull(s.in, p)
	s.body -= int64(n)
	return err
}

// skipBody takes the rest of the request's data off the stream.
func (s *session) skipBody() error {
	for s.body > 0 {
		n, err := s.in.Discard(int(min(s.body, pieceSize)))
		s.body -= int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}
