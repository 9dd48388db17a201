package fusefs

import (
	"context"
	"syscall"

	"skeletonkey/chirpd/wire"
)

// Write accepts the data, and sends it without waiting for the answer, unless the
// file was opened with O_SYNC or O_DSYNC. It reports a write that failed before, if
// the handle's user does not know yet.
func (h *handle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	o := h.node.fs.beginWrite(ctx)
	defer o.end()
	if h.writer == nil {
		return 0, syscall.EBADF
	}
	page := ofPages(ctx)
	if page && h.flags&syscall.O_APPEND != 0 {
		plain, err := h.withoutAppend(o)
		if err != nil {
			return 0, errnoFor(err)
		}
		h = plain
	}
	if !page { // which would be dropped, and the program's next write not told
		if err := h.news(); err != nil {
			return 0, errnoFor(err)
		}
	}
	end := off + int64(len(data))
	if err := h.node.drainOthers(o, h, off, end); err != nil {
		return 0, errnoFor(err)
	}
	if err := h.writer.Room(o, len(data)); err != nil {
		return 0, errnoFor(err)
	}
	h.accept(data, off)
	if h.flags&(syscall.O_SYNC|syscall.O_DSYNC) != 0 {
		if err := h.arrive(ctx); err != nil {
			return 0, errnoFor(err)
		}
	}
	return uint32(len(data)), 0
}

// arrive waits until what was accepted has been answered, whatever signals the request
// gets: to give up would invite the caller to write a second time what is on its way.
func (h *handle) arrive(ctx context.Context) error {
	o := h.node.fs.begin(context.WithoutCancel(ctx))
	defer o.end()
	if err := h.writer.Wait(o); err != nil {
		return err
	}
	return h.news()
}

// withoutAppend is a handle of the same file whose writes go where they belong: what is
// written through h goes to the end of the file. It lives as long as h; another user's
// handle may be at its end.
func (h *handle) withoutAppend(ctx context.Context) (*handle, error) {
	h.mu.Lock()
	twins := h.twins
	h.mu.Unlock()
	if len(twins) > 0 {
		return twins[0], nil
	}
	fd, err := h.node.openFile(ctx, wire.OpenWrite)
	if err != nil {
		return nil, err
	}
	twin := h.node.newHandle(fd.file, syscall.O_WRONLY, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.twins = append(h.twins, twin)
	return twin, nil
}

// accept takes data for writing.
func (h *handle) accept(data []byte, off int64) {
	h.register()
	n := h.node
	n.io.Lock()
	defer n.io.Unlock()
	h.writer.Write(data, off)
	n.wrote(off, int64(len(data)), h.flags&syscall.O_APPEND != 0)
}

// register puts the handle among those that may have something pending.
func (h *handle) register() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wrote {
		return
	}
	h.wrote = true
	f := h.node.fs
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writers[h] = struct{}{}
}

// wrote tells that bytes were accepted: what was read there before is out of date.
func (n *node) wrote(off, length int64, atEnd bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.attr.Last()
	if atEnd {
		off = st.Size
	}
	st.Size = max(st.Size, off+length)
	n.data++
	n.changedLocked()
	n.outdatedLocked(off, off+length)
}

// outdatedLocked drops what open handles read ahead between off and end.
func (n *node) outdatedLocked(off, end int64) {
	if n.open == nil {
		return
	}
	for h := range n.open.handles {
		h.reader.Invalidate(off, end)
	}
}

// resized tells that the file was given a size.
func (n *node) resized(size int64) {
	n.io.Lock()
	defer n.io.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	st := n.attr.Last()
	n.outdatedLocked(min(size, st.Size), 1<<62)
	st.Size = size
	n.data++
	n.changedLocked()
	if size == 0 && n.open != nil {
		n.open.err = nil // nothing of what was lost would be left anyway
	}
}

// written is called for each piece of data that reached the server, or failed to.
func (h *handle) written(err error) {
	if err != nil {
		h.node.failed(err)
	}
	h.node.changed()
}

// failed notes that accepted data was lost.
func (n *node) failed(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open.failed++
	n.open.err = err
	n.pages.valid = false // the kernel's hold what is lost
}

// news is the error of a failed write of the file that this handle's user does not
// know of. It tells once.
func (h *handle) news() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open.err == nil || n.open.failed <= h.told {
		return nil
	}
	h.told, n.open.told = n.open.failed, n.open.failed
	return n.open.err
}

// verdict is the error of any failed write of the file since the handle was opened.
// It tells again and again, as the lost data does not come back. heard says that
// somebody will listen.
func (h *handle) verdict(heard bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.node
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open.err == nil || n.open.failed <= h.opened {
		return nil
	}
	h.told = n.open.failed
	if heard {
		n.open.told = n.open.failed
	}
	return n.open.err
}
