package private

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A signal to the whole process group reaches the command, this process and
// the outer, which tells us: two of the three are seen here, in any order, and
// on a busy machine late.
const (
	// grace is how long one that the outer got waits for our own, once all
	// that this process had got by then has been seen (see marker).
	grace = 100 * time.Millisecond
	// memory is how long our own waits for the outer's word.
	memory = 5 * time.Second
)

// marker is a signal that we send to ourselves: when it is seen, so is what
// was sent before, as the kernel delivers lower numbers first.
const marker = syscall.Signal(62)

// phase is how far the command has come.
type phase int

const (
	preparing phase = iota // no process yet
	launching              // the launcher has not become the command yet
	running
	over // reaped; its number may belong to another
)

// relay passes signals from the outer to the command, exactly once each.
type relay struct {
	abort func()                    // called once, with mu held, when the preparations are to end
	kill  func(int, syscall.Signal) // sends a signal
	mark  func() error              // sends the marker

	mu      sync.Mutex // guards what follows, and the command's process number against reuse
	phase   phase
	pid     int
	aborted syscall.Signal
	held    []syscall.Signal               // to be sent once the command runs
	direct  map[syscall.Signal]time.Time   // when this process itself got one, not yet matched
	pending map[syscall.Signal]*time.Timer // those of the outer, not yet matched; nil before the marker is seen
}

func newRelay(abort func(), kill func(int, syscall.Signal), mark func() error) *relay {
	return &relay{
		abort: abort, kill: kill, mark: mark,
		direct:  make(map[syscall.Signal]time.Time),
		pending: make(map[syscall.Signal]*time.Timer),
	}
}

// catch makes signals to this process harmless, and notes them: they are those
// of its process group. Ignored ones stay so, for the command inherits that.
// The stop signals are caught because file systems must go on being served.
func (r *relay) catch() {
	got := make(chan os.Signal, 64)
	for _, s := range append(Signals(), unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU, marker) {
		signal.Notify(got, s)
	}
	// For as long as the process lives.
	go func() {
		for s := range got {
			r.gotDirectly(s.(syscall.Signal))
		}
	}()
}

// gotDirectly notes that this process got a signal, so the command did.
func (r *relay) gotDirectly(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, waiting := r.pending[s]
	switch {
	case s == marker:
		r.startTimers()
	case waiting:
		if t != nil {
			t.Stop()
		}
		delete(r.pending, s)
	case r.phase != preparing: // then there is no command that got it
		r.direct[s] = time.Now()
	}
}

// forward takes a signal that the outer got.
func (r *relay) forward(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase == preparing { // there is no command that could have it already
		r.deliver(s)
		return
	}
	if at, ok := r.direct[s]; ok {
		delete(r.direct, s)
		if time.Since(at) < memory {
			return
		}
	}
	if _, ok := r.pending[s]; ok {
		return
	}
	r.pending[s] = nil
	if r.mark() != nil {
		r.startTimers()
	}
}

// startTimers begins the grace of what waits for the marker. Call with mu held.
func (r *relay) startTimers() {
	for s, t := range r.pending {
		if t == nil {
			r.pending[s] = time.AfterFunc(grace, func() { r.unmatched(s) })
		}
	}
}

// unmatched sends a pending signal whose grace is over.
func (r *relay) unmatched(s syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.pending[s]; ok { // else it was matched while the timer fired
		delete(r.pending, s)
		r.deliver(s)
	}
}

// ends says whether a signal is a wish that the command end.
func ends(s syscall.Signal) bool {
	return s == unix.SIGHUP || s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGTERM
}

// deliver acts on a signal. The launcher can die of one, but not keep one for
// the command. Call with mu held.
func (r *relay) deliver(s syscall.Signal) {
	switch {
	case r.phase == running, r.phase == launching && ends(s) && s != unix.SIGQUIT:
		r.kill(r.pid, s)
	case r.phase == preparing && ends(s):
		if r.aborted == 0 {
			r.aborted = s
			r.abort()
		}
	case r.phase != over:
		r.held = append(r.held, s)
	}
}

// abortedBy returns the signal that ended the preparations, or 0.
func (r *relay) abortedBy() syscall.Signal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.aborted
}

// launch calls start, which returns the launcher's process number, unless a
// signal has ended the preparations: then it returns false.
func (r *relay) launch(start func() (int, error)) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.aborted != 0 {
		return false, nil
	}
	pid, err := start()
	if err == nil {
		r.phase, r.pid = launching, pid
	}
	return true, err
}

// started says that the command's program runs; it gets what was held for it.
func (r *relay) started() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.phase != launching {
		return
	}
	r.phase = running
	for _, s := range r.held {
		r.kill(r.pid, s)
	}
	r.held = nil
}

// reap calls wait, which may reap the command: then it returns true.
func (r *relay) reap(wait func(command int) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if wait(r.pid) {
		r.phase, r.pid = over, 0
	}
}
