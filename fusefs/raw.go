package fusefs

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// rawFS is go-fuse's file system with two things added: while something is renamed, on
// the server first and then in go-fuse's tree, nobody makes use of a path; and writes of
// mapped memory are told from those of a program.
type rawFS struct {
	fuse.RawFileSystem
	fs *FS
}

// Rename locks the tree, and renames.
func (r *rawFS) Rename(cancel <-chan struct{}, input *fuse.RenameIn, oldName, newName string) fuse.Status {
	o := r.fs.begin(&fuse.Context{Caller: input.Caller, Cancel: cancel})
	defer o.end()
	if err := r.fs.tree.Acquire(o, treeAll); err != nil {
		return fuse.Status(errnoFor(err))
	}
	defer r.fs.tree.Release(treeAll)
	return r.RawFileSystem.Rename(cancel, input, oldName, newName)
}

// pagesPID stands for the process that wrote memory of a file: nobody knows which.
const pagesPID = ^uint32(0)

// Writev marks what the kernel writes of mapped memory. It does so through any
// descriptor that is open for writing.
func (r *rawFS) Writev(cancel <-chan struct{}, input *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	if input.WriteFlags&fuse.WRITE_CACHE != 0 {
		input.Pid = pagesPID
	}
	return r.RawFileSystem.Writev(cancel, input, data)
}

// ofPages reports whether a request writes mapped memory.
func ofPages(ctx context.Context) bool {
	caller, ok := fuse.FromContext(ctx)
	return ok && caller.Pid == pagesPID
}
