package cache

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
)

type verdicts struct {
	mu     sync.Mutex
	errors []error
}

func (v *verdicts) ended(err error) {
	if err != nil {
		v.mu.Lock()
		v.errors = append(v.errors, err)
		v.mu.Unlock()
	}
}

// TestWritesArrive writes at random places and checks that the file is what it would
// be, with servers that take all, or a part.
func TestWritesArrive(t *testing.T) {
	for _, short := range []bool{false, true} {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := &server{auto: true, short: short, rnd: rnd}
		var v verdicts
		w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
		want := make([]byte, 0, 4<<20)
		random := content(1 << 20)
		pos := int64(0)
		for range 100 {
			n := 1 + rnd.IntN(300<<10)
			if rnd.IntN(5) == 0 || pos > 2<<20 {
				pos = rnd.Int64N(2 << 20)
			}
			p := bytes.Clone(random[rnd.IntN(700<<10):][:n])
			if grow := pos + int64(n) - int64(len(want)); grow > 0 {
				want = append(want, make([]byte, grow)...)
			}
			copy(want[pos:], p)
			if err := w.Room(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			w.Write(p, pos)
			clear(p) // it is the caller's again
			if short {
				// A short write is completed behind later ones, so these must not overlap.
				if err := w.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			pos += int64(n)
		}
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(s.file, want) || len(v.errors) > 0 {
			t.Errorf("seed %d, short %v: the file is wrong, or errors: %v", seed, short, v.errors)
		}
	}
}

// TestWriterCoalesces checks that small writes are put together while others are
// under way, into blocks that are not larger than one.
func TestWriterCoalesces(t *testing.T) {
	s := &server{}
	var v verdicts
	w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
	for i := range int64(600) {
		w.Write(make([]byte, 4096), i*4096)
	}
	asked := s.take()
	if len(asked) != 3 || len(asked[0].p) != 4096 || len(asked[1].p) != BlockSize || len(asked[2].p) != BlockSize {
		t.Fatalf("%d writes were sent at first", len(asked))
	}
	w.Push()
	rest := s.take()
	if len(rest) != 1 || rest[0].off != 4096+2*BlockSize {
		t.Fatalf("%d writes were sent by Push", len(rest))
	}
	for _, a := range append(asked, rest...) {
		a.answer(int64(len(a.p)), nil)
	}
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w.Pending() {
		t.Error("something is pending after Wait")
	}
}

// TestWriterIsBounded checks that Room waits once the limit is reached, until an answer
// comes or its context ends.
func TestWriterIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var v verdicts
		w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
		block := make([]byte, BlockSize)
		for i := range int64(maxWriteBehind / BlockSize) {
			if err := w.Room(t.Context(), BlockSize); err != nil {
				t.Fatal(err)
			}
			w.Write(block, i*BlockSize)
		}
		ctx, cancel := context.WithCancel(t.Context())
		room := make(chan error)
		go func() { room <- w.Room(ctx, 1) }()
		synctest.Wait()
		select {
		case err := <-room:
			t.Fatalf("there was room beyond the limit (%v)", err)
		default:
		}
		cancel()
		if err := <-room; !errors.Is(err, context.Canceled) {
			t.Fatalf("Room after its context ended: %v", err)
		}
		go func() { room <- w.Room(t.Context(), 1) }()
		asked := s.take()
		asked[0].answer(BlockSize, nil)
		if err := <-room; err != nil {
			t.Fatal(err)
		}
		for _, a := range asked[1:] {
			a.answer(BlockSize, nil)
		}
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWritersShareBudget checks that a Writer which has something pending waits while
// others have used up what they share, and that one which has nothing may write.
func TestWritersShareBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		var v verdicts
		budget := NewBudget(1000)
		a, b := NewWriter(s.write, new(Buffers), budget, false, v.ended), NewWriter(s.write, new(Buffers), budget, false, v.ended)
		for _, w := range []*Writer{a, b} {
			if err := w.Room(t.Context(), 800); err != nil {
				t.Fatal(err)
			}
			w.Write(make([]byte, 800), 0)
		}
		room := make(chan error)
		go func() { room <- b.Room(t.Context(), 100) }()
		synctest.Wait()
		select {
		case <-room:
			t.Error("there was room beyond the budget")
		default:
		}
		for _, r := range s.take() {
			r.answer(800, nil)
		}
		if err := <-room; err != nil {
			t.Error(err)
		}
		if err := a.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if left := budget.left.Load(); left != 1000 {
			t.Errorf("the budget is %d in the end", left)
		}
	})
}

// TestWriterReportsEachFailure checks that a failed write is reported before Wait
// returns, and that a server which takes nothing is one.
func TestWriterReportsEachFailure(t *testing.T) {
	bad := errors.New("bad")
	s := &server{}
	var v verdicts
	w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
	for i := range int64(3) {
		w.Write([]byte("x"), 100*i)
		w.Push()
	}
	asked := s.take()
	asked[0].answer(1, nil)
	asked[1].answer(0, bad)
	asked[2].answer(0, nil)
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(v.errors) != 2 || !errors.Is(v.errors[0], bad) {
		t.Errorf("reported: %v", v.errors)
	}
}

// TestShortWriteOvertaken checks that what a short write left over is written again only
// where nothing newer has gone to the same place meanwhile; there it is a failure.
func TestShortWriteOvertaken(t *testing.T) {
	for name, newer := range map[string]int64{"beside": 100, "over": 60} {
		s := &server{}
		var v verdicts
		w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
		w.Write(bytes.Repeat([]byte("o"), 100), 0)
		w.Write(bytes.Repeat([]byte("n"), 20), newer)
		w.Push()
		asked := s.take()
		asked[1].answer(20, nil)
		asked[0].answer(50, nil)
		s.mu.Lock()
		s.auto = true
		s.mu.Unlock()
		if err := w.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := s.take()
		if over := newer < 100; over != (len(v.errors) == 1) || over != (len(again) == 0) {
			t.Errorf("%s: reported %v, written again %d times", name, v.errors, len(again))
		}
	}
}

// TestOverlaps checks what counts as not yet answered.
func TestOverlaps(t *testing.T) {
	s := &server{}
	var v verdicts
	w := NewWriter(s.write, new(Buffers), nil, false, v.ended)
	w.Write(make([]byte, 100), 1000) // under way
	w.Write(make([]byte, 100), 5000) // waits
	for _, c := range []struct {
		off, end int64
		want     bool
	}{{0, 1000, false}, {0, 1001, true}, {1099, 1200, true}, {1100, 5000, false}, {5050, 5060, true}, {5100, 9000, false}} {
		if got := w.Overlaps(c.off, c.end); got != c.want {
			t.Errorf("Overlaps(%d, %d) = %v", c.off, c.end, got)
		}
	}
	for _, a := range s.take() {
		a.answer(100, nil)
	}
	w.Push()
	for _, a := range s.take() {
		a.answer(100, nil)
	}
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestAppendKeepsOrder checks that a Writer at the end of a file joins writes whatever
// their offsets.
func TestAppendKeepsOrder(t *testing.T) {
	s := &server{}
	var v verdicts
	w := NewWriter(s.write, new(Buffers), nil, true, v.ended)
	w.Write([]byte("first "), 0)
	w.Write([]byte("second "), 3)
	w.Write([]byte("third"), 1)
	if !w.Overlaps(1<<40, 1<<40+1) {
		t.Error("an appended write overlaps everything")
	}
	first := s.take()
	first[0].answer(6, nil)
	w.Push()
	for got := "first "; got != "first second third"; {
		for _, a := range s.take() {
			got += string(a.p)
			a.answer(int64(len(a.p)), nil)
		}
	}
	if err := w.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}
