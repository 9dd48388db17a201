package cache

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// request is a transfer that a test answers.
type request struct {
	p    []byte
	off  int64
	done chan struct{}
	n    int64
	err  error
}

func (r *request) Done() <-chan struct{} { return r.done }

func (r *request) Wait(ctx context.Context) (int64, error) {
	select {
	case <-r.done:
		return r.n, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r *request) answer(n int64, err error) {
	r.n, r.err = n, err
	close(r.done)
}

// server is a file that answers when its test says so.
type server struct {
	mu    sync.Mutex
	file  []byte
	asked []*request
	// at once: answer in start, a part of what is asked for at most
	auto  bool
	short bool
	rnd   *rand.Rand
}

func (s *server) read(p []byte, off int64) Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &request{p: p, off: off, done: make(chan struct{})}
	s.asked = append(s.asked, r)
	if s.auto {
		s.serve(r)
	}
	return r
}

// serve answers a read as a server would. s.mu is held.
func (s *server) serve(r *request) {
	p := r.p
	if s.short && len(p) > 1 {
		p = p[:1+s.rnd.IntN(len(p)-1)]
	}
	n := 0
	if r.off < int64(len(s.file)) {
		n = copy(p, s.file[r.off:])
	}
	r.answer(int64(n), nil)
}

func (s *server) write(p []byte, off int64) Transfer {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &request{p: p, off: off, done: make(chan struct{})}
	s.asked = append(s.asked, r)
	if s.auto {
		s.apply(r)
	}
	return r
}

// apply answers a write as a server would. s.mu is held.
func (s *server) apply(r *request) {
	p := r.p
	if s.short && len(p) > 1 {
		p = p[:1+s.rnd.IntN(len(p)-1)]
	}
	if grow := r.off + int64(len(p)) - int64(len(s.file)); grow > 0 {
		s.file = append(s.file, make([]byte, grow)...)
	}
	copy(s.file[r.off:], p)
	r.answer(int64(len(p)), nil)
}

// take returns what was asked for and not taken yet.
func (s *server) take() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// content is n bytes, the same each time.
func content(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{}).Read(b)
	return b
}

func bytesOf(d *Data) []byte {
	var b []byte
	for _, s := range d.Slices {
		b = append(b, s...)
	}
	return b
}
