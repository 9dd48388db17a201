package chirptest

import (
	"net"
	"time"
)

// link is one connection through a relay.
type link struct {
	relay *Relay
	side  [2]*net.TCPConn // where bytes of a direction go to
	gone  chan struct{}

	// Guarded by relay.mu.
	hung   bool // the client must not notice that the server's side has ended
	ended  bool
	upside bool // the last bytes went up
	passed [2]int64
	queued [2]int // bytes taken and not given
}

// backlog is how many bytes a link with a limited rate holds back; its peers notice
// the limit soon.
const backlog = 64 << 10

type piece struct {
	b   []byte
	due time.Time
}

// carry connects an accepted client to the target.
func (r *Relay) carry(client *net.TCPConn) {
	c, err := net.Dial("tcp", r.target)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil || r.closed {
		_ = client.SetLinger(0)
		_ = client.Close()
		if err == nil {
			_ = c.Close()
		}
		return
	}
	l := &link{relay: r, side: [2]*net.TCPConn{Up: c.(*net.TCPConn), Down: client}, gone: make(chan struct{})}
	r.links[l] = struct{}{}
	r.conns++
	for _, w := range []Way{Up, Down} {
		_ = l.side[w].SetReadBuffer(backlog)
		queue := make(chan piece, 4096)
		r.wg.Go(func() { l.take(w, queue) })
		r.wg.Go(func() { l.give(w, queue) })
	}
}

// end closes both sides, by a reset where the peer must not take it for an orderly
// end. relay.mu is held.
func (l *link) end(reset bool) {
	if l.ended {
		return
	}
	l.ended = true
	close(l.gone)
	delete(l.relay.links, l)
	for _, c := range l.side {
		if reset {
			_ = c.SetLinger(0)
		}
		_ = c.Close()
	}
	l.relay.changed.Broadcast()
}

// take reads what goes in direction w, and says when it is due.
func (l *link) take(w Way, queue chan<- piece) {
	defer close(queue)
	for {
		b := make([]byte, 32<<10)
		n, err := l.side[1-w].Read(b)
		if n > 0 {
			p, ok := l.note(w, b[:n])
			if ok {
				select {
				case queue <- p:
				case <-l.gone:
					return
				}
			}
		}
		if err != nil {
			return
		}
	}
}

// note counts bytes that came in, and reports whether they go on.
func (l *link) note(w Way, b []byte) (piece, bool) {
	r := l.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bytes[w] += int64(len(b))
	if w == Up && !l.upside {
		r.turns++
	}
	l.upside = w == Up
	for r.rate[w] > 0 && l.queued[w] > backlog && !l.ended {
		r.changed.Wait()
	}
	if !r.deaf[w] {
		l.queued[w] += len(b)
	}
	return piece{b, time.Now().Add(r.delay)}, !r.deaf[w]
}

// give writes what was taken when it is due, and ends the direction or the link when
// there is no more.
func (l *link) give(w Way, queue <-chan piece) {
	r := l.relay
	for p := range queue {
		if !l.wait(time.Until(p.due)) {
			return
		}
		for b := p.b; len(b) > 0; {
			n, pause, cut := l.allow(w, len(b))
			if n > 0 {
				if _, err := l.side[w].Write(b[:n]); err != nil {
					break
				}
				b = b[n:]
			}
			if cut {
				r.mu.Lock()
				l.end(true)
				r.mu.Unlock()
			}
			if !l.wait(pause) {
				return
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if w == Up {
		_ = l.side[Up].CloseWrite() // the server may still have an answer
	} else if !l.hung {
		l.end(false)
	}
}

func (l *link) wait(d time.Duration) bool {
	if d <= 0 {
		select {
		case <-l.gone:
			return false
		default:
			return true
		}
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-l.gone:
		return false
	}
}

// allow waits while the relay is paused, and says how many of n bytes may be written
// now, how long to wait after them, and whether the link is to be cut then.
func (l *link) allow(w Way, n int) (now int, pause time.Duration, cut bool) {
	r := l.relay
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.paused && !l.ended {
		r.changed.Wait()
	}
	if limit := r.cutAt[w]; limit > 0 && l.passed[w]+int64(n) >= limit {
		n, cut = int(max(limit-l.passed[w], 0)), true
	}
	if rate := r.rate[w]; rate > 0 {
		if slice := int(max(rate/50, 1)); n > slice {
			n, cut = slice, false
		}
		pause = time.Duration(n) * time.Second / time.Duration(rate)
	}
	if cut {
		r.cutAt[w] = 0
	}
	l.passed[w] += int64(n)
	l.queued[w] -= n
	r.changed.Broadcast()
	return n, pause, cut
}
