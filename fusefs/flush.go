package fusefs

import (
	"context"
	"syscall"

	"skeletonkey/fusefs/cache"
)

// Flush is called for each close of a descriptor: it waits until all that was written to
// the file has been answered, and reports what failed. (Through which handle the kernel
// writes memory that was mapped, nobody knows.) That counts as told to nobody: the closes
// of a process that ends, and of a shell's redirection, go by unheard, and few programs
// look at theirs.
func (h *handle) Flush(ctx context.Context) syscall.Errno {
	if h.writer == nil {
		return 0
	}
	o := h.node.fs.beginWrite(ctx)
	defer o.end()
	if err := h.node.drain(o, nil); err != nil {
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
