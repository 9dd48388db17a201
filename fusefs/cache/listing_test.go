package cache

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func entries(names ...string) []Entry[int] {
	var out []Entry[int]
	for i, n := range names {
		out = append(out, Entry[int]{n, i})
	}
	return out
}

func (d *Directory[V]) has(name string) Answer {
	_, _, a := d.Lookup(name)
	return a
}

func TestTimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v Timed[int]
		if _, _, ok := v.Get(); ok {
			t.Error("an empty Timed has a value")
		}
		v.Set(7, time.Second)
		time.Sleep(999 * time.Millisecond)
		if got, left, ok := v.Get(); got != 7 || left != time.Millisecond || !ok {
			t.Errorf("Get = %d, %v, %v", got, left, ok)
		}
		time.Sleep(time.Millisecond)
		if _, _, ok := v.Get(); ok {
			t.Error("a value outlived its time")
		}
		if *v.Last() != 7 {
			t.Error("the last value is lost")
		}
		v.Set(8, time.Second)
		v.Forget()
		if _, _, ok := v.Get(); ok {
			t.Error("a forgotten value is believed")
		}
	})
}

// TestDirectoryAnswers checks what a listing says before and after its time.
func TestDirectoryAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Directory[int]
		if d.has("a") != Unknown {
			t.Error("an empty Directory knows something")
		}
		l := d.Begin()
		time.Sleep(100 * time.Millisecond) // the listing is on its way
		d.Finish(l, entries("a", "b"), time.Second)
		d.End()
		time.Sleep(time.Second + 2*perEntry - time.Millisecond)
		if d.has("a") != Present || d.has("c") != Absent {
			t.Error("a fresh listing is not believed")
		}
		time.Sleep(time.Millisecond)
		if d.has("a") != Unknown || d.has("c") != Unknown {
			t.Error("a listing is believed for longer than it should be")
		}
	})
}

// TestDirectoryChanges checks that a name which was changed here is not answered from
// an older listing, be the change before or while it was on its way, and is again from
// a newer one.
func TestDirectoryChanges(t *testing.T) {
	var d Directory[int]
	old := d.Begin()
	d.Finish(old, entries("a", "b"), time.Hour)
	d.Change("a", "new")
	if d.has("a") != Unknown || d.has("new") != Unknown || d.has("b") != Present {
		t.Error("a changed name is answered from an older listing")
	}
	if _, ok := d.Fresh(); ok {
		t.Error("a listing is fresh after a change")
	}
	next := d.Begin()
	d.Change("b")
	d.Finish(next, entries("b", "new"), time.Hour)
	if d.has("a") != Absent || d.has("new") != Present || d.has("b") != Unknown {
		t.Error("the newer listing is not believed, or too much")
	}
	if !d.Changed(old, "a") || !d.Changed(next, "b") || d.Changed(next, "a") {
		t.Error("Changed does not tell listings apart")
	}
	d.End()
	d.End()
	if _, ok := d.Fresh(); ok {
		t.Error("a listing is fresh though a name changed while it was on its way")
	}
}

// TestOlderListingLate checks that a listing which was asked for first and comes last
// does not replace the newer one.
func TestOlderListingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Directory[int]
		first := d.Begin()
		time.Sleep(time.Millisecond)
		second := d.Begin()
		d.Finish(second, entries("x"), time.Hour)
		d.Finish(first, entries("y"), time.Hour)
		if d.has("x") != Present || d.has("y") != Absent {
			t.Error("an older listing replaced a newer one")
		}
	})
}

// TestChangesAreForgotten checks that changes are not remembered when no listing is left
// that they would concern.
func TestChangesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d Directory[int]
		d.Finish(d.Begin(), entries("a"), time.Second)
		d.End()
		d.Change("a")
		time.Sleep(2 * time.Second)
		d.Change("b")
		if d.changed != nil || d.newest != nil {
			t.Error("changes are kept that nobody can ask for")
		}
	})
}

func TestFreshIsShared(t *testing.T) {
	var d Directory[int]
	l := d.Begin()
	d.Finish(l, entries("a"), time.Hour)
	same, ok := d.Fresh()
	if !ok || same != l {
		t.Fatal("the newest listing is not fresh")
	}
	if v, ok := same.Find("a"); !ok || v != 0 {
		t.Error("Find misses an entry")
	}
	d.End()
	d.End()
	for i := range 100 {
		d.Change(fmt.Sprint(i))
	}
	if len(d.changed) != 100 {
		t.Errorf("%d changes are remembered, want 100", len(d.changed))
	}
}
