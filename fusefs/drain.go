package fusefs

import (
	"context"
	"syscall"
)

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
