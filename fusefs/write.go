package fusefs

import (
	"context"
	"syscall"

	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
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
	if h.flags&syscall.O_APPEND != 0 && ofPages(ctx) {
		plain, err := h.withoutAppend(o)
		if err != nil {
			return 0, errnoFor(err)
		}
		h = plain
	}
	if err := h.news(); err != nil {
		return 0, errnoFor(err)
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
		// What was accepted is on its way: to give up waiting would invite the caller
		// to write it a second time.
		if err := h.writer.Wait(context.WithoutCancel(o)); err != nil {
			return 0, errnoFor(err)
		}
		if err := h.news(); err != nil {
			return 0, errnoFor(err)
		}
	}
	return uint32(len(data)), 0
}

// withoutAppend is a handle of the same file whose writes go where they belong: what is
// written through h goes to the end of the file.
func (h *handle) withoutAppend(ctx context.Context) (*handle, error) {
	for _, other := range h.node.writing(h) {
		if other.flags&syscall.O_APPEND == 0 {
			return other, nil
		}
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

// pending reports whether data that was accepted for the file is not on the server.
func (n *node) pending() bool {
	for _, h := range n.writing(nil) {
		if h.writer.Pending() {
			return true
		}
	}
	return false
}

// writing lists the open handles that may write, but for except.
func (n *node) writing(except *handle) []*handle {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == nil {
		return nil
	}
	var list []*handle
	for h := range n.open.handles {
		if h.writer != nil && h != except {
			list = append(list, h)
		}
	}
	return list
}

// drain waits until all data that was accepted for the file, except through one
// handle, has been answered.
func (n *node) drain(ctx context.Context, except *handle) error {
	for _, h := range n.writing(except) {
		if err := h.writer.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drainOthers waits until no other handle's data can still overtake, or be overtaken
// by, what h is going to write between off and end.
func (n *node) drainOthers(ctx context.Context, h *handle, off, end int64) error {
	atEnd := h.flags&syscall.O_APPEND != 0
	for _, other := range n.writing(h) {
		if other.writer.Overlaps(off, end) || atEnd && other.writer.Pending() {
			if err := other.writer.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// drainBelow waits until all data accepted for files below the directory has been
// answered.
func (f *FS) drainBelow(ctx context.Context, dir *node) error {
	f.mu.Lock()
	var list []*handle
	for h := range f.writers {
		list = append(list, h)
	}
	f.mu.Unlock()
	for _, h := range list {
		if h.writer.Pending() && h.node.below(dir) {
			if err := h.writer.Wait(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// below reports whether the node is in the directory, or deeper.
func (n *node) below(dir *node) bool {
	for _, in := n.Parent(); in != nil; _, in = in.Parent() {
		if in == dir.EmbeddedInode() {
			return true
		}
	}
	return false
}

// Flush is called for each close of a descriptor: it waits until all that was written
// through the handle has been answered, and reports what failed. That counts as told
// to nobody: the closes of a process that ends, and of a shell's redirection, go by
// unheard, and few programs look at theirs.
func (h *handle) Flush(ctx context.Context) syscall.Errno {
	if h.writer == nil {
		return 0
	}
	o := h.node.fs.beginWrite(ctx)
	defer o.end()
	if err := h.writer.Wait(o); err != nil {
		return errnoFor(err)
	}
	return errnoFor(h.verdict(false))
}

// Fsync puts on the server's disk all that was written to the file here.
func (h *handle) Fsync(ctx context.Context, _ uint32) syscall.Errno {
	o := h.node.fs.beginWrite(ctx)
	defer o.end()
	return errnoFor(h.sync(o))
}

func (h *handle) sync(ctx context.Context) error {
	if err := h.node.drain(ctx, h); err != nil {
		return err
	}
	file := h.node.borrowAny(h)
	if file == nil {
		return h.verdict(true) // a reader of what is in memory; nobody writes
	}
	defer file.giveBack()
	if h.writer != nil {
		h.writer.Push() // the server takes it before the fsync
	}
	_, err := file.StartFsync().Wait(ctx)
	if h.writer != nil {
		if err := h.writer.Wait(ctx); err != nil {
			return err
		}
	}
	if errno := errnoFor(err); errno != 0 && errno != syscall.EINTR {
		h.node.failed(err)
	}
	if lost := h.verdict(true); lost != nil {
		return lost
	}
	return err
}

// Release is called when the last descriptor is gone. What is still under way, from
// memory that was mapped, goes on behind.
func (h *handle) Release(context.Context) syscall.Errno {
	f := h.node.fs
	if h.writer != nil && h.writer.Pending() {
		f.work.Go(func() {
			_ = h.writer.Wait(context.Background())
			h.close()
		})
		return 0
	}
	h.close()
	return 0
}

// settle does what Release does for the handles whose release the kernel never sent,
// as it drops what is queued when a mount ends, and waits until all is done.
func (f *FS) settle() {
	for {
		f.work.Wait()
		f.mu.Lock()
		var left *handle
		for left = range f.writers {
			break
		}
		f.mu.Unlock()
		if left == nil {
			return
		}
		_ = left.writer.Wait(context.Background()) // what failed is in the books
		left.close()
	}
}

// close sends the close, which nobody awaits, and takes the handle out of the books.
// Only the first one counts.
func (h *handle) close() {
	h.mu.Lock()
	again := h.closed
	h.closed = true
	h.mu.Unlock()
	if again {
		return
	}
	n, f := h.node, h.node.fs
	for _, twin := range h.twins {
		twin.Release(context.Background())
	}
	h.reader.Close()
	path := f.URL()
	if file := h.file.Load(); file != nil {
		path = file.Path()
		wrote := h.writer != nil
		file.finish(func() { f.closing(file.StartClose(), path, wrote) })
	}
	f.mu.Lock()
	delete(f.writers, h)
	f.mu.Unlock()
	n.mu.Lock()
	open := n.open
	delete(open.handles, h)
	if len(open.handles) == 0 {
		n.open = nil
	}
	unknown := n.open == nil && open.err != nil && open.failed > open.told
	n.mu.Unlock()
	if unknown {
		f.lose(path, open.err)
	}
}

// closing sees to it that the mount's end awaits a close that may have something to
// say.
func (f *FS) closing(call cache.Transfer, path string, wrote bool) {
	if !wrote {
		return
	}
	f.work.Go(func() {
		select {
		case <-call.Done():
		case <-f.aborted:
			return
		}
		if _, err := call.Wait(context.Background()); err != nil {
			f.lose(path, err)
		}
	})
}
