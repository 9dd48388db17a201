package fusefs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
)

// rawFS is go-fuse's file system with one thing added: while something is renamed,
// on the server first and then in go-fuse's tree, nobody makes use of a path.
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
