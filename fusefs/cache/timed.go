package cache

import "time"

// Timed is a value that is believed until its time is over. The zero Timed holds
// nothing. It is not safe for concurrent use.
type Timed[V any] struct {
	value V
	until time.Time
}

// Set makes v the value for the time ttl.
func (t *Timed[V]) Set(v V, ttl time.Duration) {
	t.value, t.until = v, time.Now().Add(ttl)
}

// Get returns the value and how long it may still be believed; ok is false when
// there is none, or its time is over.
func (t *Timed[V]) Get() (v V, left time.Duration, ok bool) {
	if t.until.IsZero() {
		return v, 0, false
	}
	left = time.Until(t.until)
	if left <= 0 {
		return v, 0, false
	}
	return t.value, left, true
}

// Last is the value that was set last, believed or not.
func (t *Timed[V]) Last() *V { return &t.value }

// Forget ends the value's time.
func (t *Timed[V]) Forget() { t.until = time.Time{} }
