package fusefs

import (
	"context"
	"time"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// found is a file that an open came upon where it expected another one: somebody has
// replaced it. The kernel is told ESTALE, looks the name up again, and opens what it
// finds, but only once. So that a name which is replaced all the time can be opened
// nevertheless, both answers come from the file that is open already.
type found struct {
	file  *client.File
	stat  wire.Stat
	flags wire.OpenFlags
	asked time.Time
}

// foundLife is how long a found file waits for its second open.
const foundLife = time.Second

// keepFound keeps a file that was opened as one of the node's names. Only one is kept
// for each node; it goes when nobody asks for it.
func (n *node) keepFound(fd *found) {
	name, in := n.Parent()
	if in == nil {
		fd.file.StartClose()
		return
	}
	dir := in.Operations().(*node)
	dir.mu.Lock()
	if dir.found == nil {
		dir.found = make(map[string]*found)
	}
	old := dir.found[name]
	dir.found[name] = fd
	dir.mu.Unlock()
	if old != nil {
		old.file.StartClose()
	}
	n.fs.work.Add(1)
	time.AfterFunc(foundLife, func() {
		defer n.fs.work.Done()
		if dir.takeFound(name, func(have *found) bool { return have == fd }) != nil {
			fd.file.StartClose()
		}
	})
}

// takeFound takes what is kept for name in the directory, if it is wanted.
func (n *node) takeFound(name string, wanted func(*found) bool) *found {
	n.mu.Lock()
	defer n.mu.Unlock()
	fd := n.found[name]
	if fd == nil || !wanted(fd) {
		return nil
	}
	delete(n.found, name)
	return fd
}

// lookFound is what a look-up of name finds among what is kept, or nil.
func (n *node) lookFound(name string) *found {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.found[name]
}

// openFile opens the file on the server, unless it is open already. It fails with
// ESTALE when it comes upon another file.
func (n *node) openFile(ctx context.Context, flags wire.OpenFlags) (*found, error) {
	if name, in := n.Parent(); in != nil {
		dir := in.Operations().(*node)
		fd := dir.takeFound(name, func(fd *found) bool { return identOf(&fd.stat) == n.id && fd.flags == flags })
		if fd != nil {
			return fd, nil
		}
	}
	fd := &found{flags: flags, asked: time.Now()}
	err := n.at(ctx, "", func(path string) (err error) {
		fd.file, err = n.fs.client.Open(ctx, path, flags, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	fd.stat = fd.file.Stat()
	if !n.is(&fd.stat) {
		n.keepFound(fd)
		return nil, errStale
	}
	return fd, nil
}
