package cache

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

func newTestReader(s *server, budget int64) *Reader {
	return NewReader(s.read, new(Buffers), NewBudget(budget))
}

// TestReadsWhatIsThere reads in every manner from servers that answer in full, and in
// small pieces.
func TestReadsWhatIsThere(t *testing.T) {
	file := content(3<<20 + 12345)
	for _, short := range []bool{false, true} {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := &server{file: file, auto: true, short: short, rnd: rnd}
		r := newTestReader(s, 64<<20)
		pos := int64(0)
		for range 400 {
			n := 1 + rnd.IntN(100<<10)
			switch rnd.IntN(10) {
			case 0:
				pos = rnd.Int64N(int64(len(file)) + 1000)
			case 1:
				pos = 0
			}
			d, err := r.Read(t.Context(), pos, n, int64(len(file)))
			if err != nil {
				t.Fatal(err)
			}
			want := file[min(pos, int64(len(file))):min(pos+int64(n), int64(len(file)))]
			if got := bytesOf(d); !bytes.Equal(got, want) || d.Size() != len(want) {
				t.Fatalf("seed %d: %d bytes at %d: got %d (size %d), want %d", seed, n, pos, len(got), d.Size(), len(want))
			}
			d.Close()
			pos += int64(n)
		}
		r.Close()
		if left := r.budget.left.Load(); left != 64<<20 {
			t.Errorf("budget is %d after all was closed, want %d", left, 64<<20)
		}
	}
}

// TestSequentialReadNeverWaits checks that a stream finds under way what it will need
// next, in large blocks, and that it holds more ahead when it has to wait.
func TestSequentialReadNeverWaits(t *testing.T) {
	const size = 256 << 20
	s := &server{file: make([]byte, size)}
	r := newTestReader(s, 64<<20)
	r.Plan(0, 128<<10, size)
	first := s.take()
	if len(first) != 1 || len(first[0].p) != firstBlock {
		t.Fatalf("the first read asked for %d blocks of %d bytes, want one of %d", len(first), len(first[0].p), firstBlock)
	}
	r.Plan(128<<10, 128<<10, size)
	ahead := s.take()
	if len(ahead) < 2 {
		t.Fatalf("the second read asked for %d blocks, want some ahead", len(ahead))
	}
	next := int64(firstBlock)
	for _, b := range ahead {
		if b.off != next || b.off%BlockSize != 0 && b.off != firstBlock {
			t.Errorf("block at %d, want %d", b.off, next)
		}
		next += int64(len(b.p))
	}
	if next < 256<<10+minAhead/2 {
		t.Errorf("%d bytes are under way, want near %d", next, minAhead)
	}
}

// TestWindowGrows reads a stream from a server that answers only those who wait: what
// is held ahead grows up to the limit, and no further than the budget.
func TestWindowGrows(t *testing.T) {
	for _, c := range []struct{ budget, want int64 }{{64 << 20, maxAhead}, {8 << 20, 8 << 20}} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{}
			r := newTestReader(s, c.budget)
			var waiting []*request
			most := int64(0)
			for pos := int64(0); pos < 150<<20; pos += 512 << 10 {
				p := r.Plan(pos, 512<<10, 1<<30)
				got := make(chan *Data)
				go func() {
					d, err := p.Wait(context.Background())
					if err != nil {
						t.Error(err)
					}
					d.Close()
					close(got)
				}()
				synctest.Wait()
				waiting = append(waiting, s.take()...)
				inFlight := int64(0)
				for _, w := range waiting {
					inFlight += int64(len(w.p))
				}
				most = max(most, inFlight)
				for done := false; !done; {
					select {
					case <-got:
						done = true
					default: // it waits, for the oldest
						waiting[0].answer(int64(len(waiting[0].p)), nil)
						waiting = waiting[1:]
						synctest.Wait()
					}
				}
			}
			if most > c.want+2*BlockSize || most < c.want/2 {
				t.Errorf("budget %d: up to %d bytes were under way, want near %d", c.budget, most, c.want)
			}
			for _, w := range waiting {
				w.answer(0, nil)
			}
			r.Close()
		})
	}
}

// TestRandomReadsAreExact checks that a read outside a stream asks for its own bytes.
func TestRandomReadsAreExact(t *testing.T) {
	s := &server{file: content(8 << 20), auto: true}
	r := newTestReader(s, 64<<20)
	for _, off := range []int64{5 << 20, 1 << 20, 7 << 20, 3 << 20, 12345} {
		d, err := r.Read(t.Context(), off, 4096, 8<<20)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		if asked := s.take(); len(asked) != 1 || asked[0].off != off || len(asked[0].p) != 4096 {
			t.Errorf("a read of 4096 bytes at %d asked for %d at %d", off, len(asked[0].p), asked[0].off)
		}
	}
}

// TestEndOfFileCostsNothing checks that no request is made only to learn that the file
// ends where it is believed to.
func TestEndOfFileCostsNothing(t *testing.T) {
	file := content(100_000)
	s := &server{file: file, auto: true}
	r := newTestReader(s, 64<<20)
	d, err := r.Read(t.Context(), 0, 128<<10, int64(len(file)))
	if err != nil || !bytes.Equal(bytesOf(d), file) {
		t.Fatalf("read: %v", err)
	}
	if n := len(s.take()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestShrunkFile checks that a file which became shorter ends where it does now, and
// that one which became longer is read to its new end.
func TestShrunkFile(t *testing.T) {
	file := content(300_000)
	s := &server{file: file[:200_000], auto: true}
	r := newTestReader(s, 64<<20)
	for _, c := range []struct {
		off, size int64
		n, want   int
	}{
		{0, 300_000, 300_000, 200_000},
		{200_000, 300_000, 1000, 0},
		{150_000, 100_000, 1000, 1000}, // beyond what is believed: asked for
	} {
		d, err := r.Read(t.Context(), c.off, c.n, c.size)
		if err != nil || d.Size() != c.want {
			t.Errorf("%d bytes at %d of believed %d: %d bytes, %v; want %d", c.n, c.off, c.size, d.Size(), err, c.want)
		}
	}
}

// TestInterruptedRead checks that a read whose context ends returns at once, and that
// its late reply still serves, or is dropped, without harm.
func TestInterruptedRead(t *testing.T) {
	file := content(1 << 20)
	s := &server{file: file}
	r := newTestReader(s, 64<<20)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := r.Read(ctx, 0, 4096, int64(len(file))); !errors.Is(err, context.Canceled) {
		t.Fatalf("read with an ended context: %v", err)
	}
	asked := s.take()
	r.Invalidate(0, 4096) // what is under way is dropped
	s.mu.Lock()
	s.auto = true
	for _, a := range asked {
		s.serve(a)
	}
	s.mu.Unlock()
	d, err := r.Read(t.Context(), 0, 4096, int64(len(file)))
	if err != nil || !bytes.Equal(bytesOf(d), file[:4096]) {
		t.Fatalf("read again: %v", err)
	}
}

// TestFailedBlockIsAskedForAgain checks that an error is not remembered.
func TestFailedBlockIsAskedForAgain(t *testing.T) {
	file := content(1 << 20)
	s := &server{file: file}
	r := newTestReader(s, 64<<20)
	p := r.Plan(0, 4096, int64(len(file)))
	bad := errors.New("bad")
	s.take()[0].answer(0, bad)
	if _, err := p.Wait(t.Context()); !errors.Is(err, bad) {
		t.Fatalf("read: %v, want %v", err, bad)
	}
	s.mu.Lock()
	s.auto = true
	s.mu.Unlock()
	d, err := r.Read(t.Context(), 0, 4096, int64(len(file)))
	if err != nil || !bytes.Equal(bytesOf(d), file[:4096]) {
		t.Fatalf("read again: %v", err)
	}
}

// TestInvalidate checks that bytes read ahead are not handed out once they changed.
func TestInvalidate(t *testing.T) {
	s := &server{file: content(4 << 20), auto: true}
	r := newTestReader(s, 64<<20)
	size := int64(len(s.file))
	for pos := int64(0); pos < 1<<20; pos += 128 << 10 {
		d, err := r.Read(t.Context(), pos, 128<<10, size)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
	s.mu.Lock()
	s.file[1<<20+5] ^= 0xff
	s.mu.Unlock()
	r.Invalidate(1<<20+5, 1<<20+6)
	d, err := r.Read(t.Context(), 1<<20, 4096, size)
	if err != nil || !bytes.Equal(bytesOf(d), s.file[1<<20:1<<20+4096]) {
		t.Fatalf("stale bytes after Invalidate (%v)", err)
	}
}
