package fusefs

import (
	"sync"

	"skeletonkey/chirpd/client"
)

// remoteFile is a file that is open on the server, for one handle, and lent to others
// that need any descriptor of the same file. It is closed when its handle is, and
// nobody has borrowed it any more.
type remoteFile struct {
	*client.File

	mu     sync.Mutex // guards the following
	users  int
	closed bool
	close  func() // to be run by the last user
}

// borrow keeps the file open until giveBack. It fails when the file is being closed.
func (r *remoteFile) borrow() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.users++
	return true
}

func (r *remoteFile) giveBack() {
	r.mu.Lock()
	r.users--
	last := r.users == 0 && r.closed
	r.mu.Unlock()
	if last {
		r.close()
	}
}

// finish runs close once nobody uses the file.
func (r *remoteFile) finish(close func()) {
	r.mu.Lock()
	r.closed, r.close = true, close
	idle := r.users == 0
	r.mu.Unlock()
	if idle {
		close()
	}
}

// borrowAny borrows a file that is open on the server: h's if it has one, else that of
// another handle, else nil.
func (n *node) borrowAny(h *handle) *remoteFile {
	if h != nil {
		if file := h.file.Load(); file != nil && file.borrow() {
			return file
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		return nil
	}
	for h := range n.open.handles {
		if file := h.file.Load(); file != nil && file.borrow() {
			return file
		}
	}
	return nil
}
