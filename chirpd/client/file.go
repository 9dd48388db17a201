package client

import (
	"context"
	"sync"

	"skeletonkey/chirpd/wire"
)

// File is an open file. It is safe for concurrent use; its calls run on one
// connection, in the order in which they were started. After a reconnect it is the
// same file, or every call fails with ESTALE (package comment).
type File struct {
	client *Client
	lane   *lane
	flags  wire.OpenFlags
	opened wire.Stat

	// Guarded by lane.mu.
	on     *conn // where fd counts
	fd     int64
	closed bool  // a close was started
	stale  error // why the file is no more

	mu     sync.Mutex // guards the following
	path   string     // where the file is now
	acked  int64      // changes that the server acknowledged
	synced int64      // how many of them it has put on disk
	end    int64      // the file is at least so long, by what was acknowledged and not synced
}

// Open opens the file at path, one round trip. mode counts when it is created.
// When ctx ends first, a file that the server opens all the same is closed again.
func (c *Client) Open(ctx context.Context, path string, flags wire.OpenFlags, mode int64) (*File, error) {
	f := &File{client: c, lane: c.choose(), flags: flags, path: path}
	twice := again
	switch {
	case flags&(wire.OpenExclude|wire.OpenTruncate) != 0:
		twice = once // a late truncate would take what was written since
	case flags&wire.OpenCreate == 0:
		twice = pure
	}
	k := c.call("open", path, twice, &wire.Open{Path: path, Flags: flags, Mode: mode})
	k.read = func(in *conn, fd int64) error { return f.born(in, k, fd) }
	if _, err := f.lane.run(ctx, k); err != nil {
		if f.lane.has(f) {
			f.StartClose()
		} else {
			f.lane.leave()
		}
		return nil, err
	}
	return f, nil
}

// born takes the file that the server has opened, or closes it when nobody wants
// it any more.
func (f *File) born(in *conn, k *Call, fd int64) error {
	st, err := in.stat()
	if err != nil {
		return err
	}
	l := f.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.isAbandoned() {
		l.forsake(in, fd)
		return nil
	}
	f.on, f.fd, f.opened = in, fd, st
	l.files[f] = struct{}{}
	f.client.mu.Lock()
	f.client.files[f] = struct{}{}
	f.client.mu.Unlock()
	return nil
}

// forsake closes a descriptor that belongs to no file. l.mu is held.
func (l *lane) forsake(in *conn, fd int64) {
	k := l.client.call("close", "", pure, &wire.Close{FD: fd})
	k.bound = true
	k.init(l)
	_ = in.enqueue(k) // a connection that is down has closed it
}

func (l *lane) has(f *File) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.files[f]
	return ok
}

// leave takes back choose.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opens--
}

// call is a call on the open file.
func (f *File) call(op string, twice replay, request func(fd int64) wire.Request) *Call {
	return &Call{op: op, replay: twice, request: request, file: f}
}

// Path is where the file is now, as far as this Client knows: its own Rename of
// the file, or of a directory above it, is followed.
func (f *File) Path() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.path
}

// Flags are those that the file was opened with.
func (f *File) Flags() wire.OpenFlags { return f.flags }

// Stat is what the server said when it opened the file; no round trip.
func (f *File) Stat() wire.Stat { return f.opened }

// dirty reports whether the server acknowledged changes that may not be on its disk.
func (f *File) dirty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked > f.synced
}

// changed notes an acknowledged change after which the file is at least end bytes
// long.
func (f *File) changed(end int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked++
	f.end = max(f.end, end)
}

// StartPread starts reading up to len(p) bytes, at most wire.MaxData, at off. It is
// sent at once, together with what else was just started. p belongs to the call until
// it is done. The answer is the count; fewer than asked for are not the end of the
// file, only zero is.
func (f *File) StartPread(p []byte, off int64) *Call { return f.lane.start(f.pread(p, off)) }

func (f *File) pread(p []byte, off int64) *Call {
	p = p[:min(len(p), wire.MaxData)]
	k := f.call("pread", pure, func(fd int64) wire.Request {
		return &wire.Pread{FD: fd, Length: int64(len(p)), Offset: off}
	})
	k.read = func(in *conn, n int64) error {
		if n > int64(len(p)) {
			return outOfStep("%d bytes where %d were asked for", n, len(p))
		}
		return in.fill(k, p[:n])
	}
	return k
}

// StartPwrite starts writing p, at most wire.MaxData bytes of it, at off, or at the
// end of a file that was opened to append. p belongs to the call until it is done.
// The answer is the count, which may be less than len(p).
func (f *File) StartPwrite(p []byte, off int64) *Call { return f.lane.start(f.pwrite(p, off)) }

func (f *File) pwrite(p []byte, off int64) *Call {
	p = p[:min(len(p), wire.MaxData)]
	twice := again
	if f.flags&wire.OpenAppend != 0 {
		twice = once
	}
	k := f.call("pwrite", twice, func(fd int64) wire.Request {
		return &wire.Pwrite{FD: fd, Length: int64(len(p)), Offset: off}
	})
	k.data = p
	k.read = func(_ *conn, n int64) error {
		if n > int64(len(p)) || n == 0 && len(p) > 0 {
			return outOfStep("%d bytes written of %d", n, len(p))
		}
		return nil
	}
	k.then = func(n int64, err error) {
		switch {
		case err != nil:
		case twice == once:
			f.changed(0)
		default:
			f.changed(off + n)
		}
	}
	return k
}

// StartFsync starts putting on the server's disk what was acknowledged before.
func (f *File) StartFsync() *Call { return f.lane.start(f.fsync()) }

func (f *File) fsync() *Call {
	f.mu.Lock()
	acked := f.acked
	f.mu.Unlock()
	k := f.call("fsync", pure, func(fd int64) wire.Request { return &wire.Fsync{FD: fd} })
	k.slow = slowDisk
	k.then = func(_ int64, err error) {
		if err == nil {
			f.sync(acked)
		}
	}
	return k
}

// sync notes that the first acked changes are on disk.
func (f *File) sync(acked int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.synced = max(f.synced, acked)
	if f.synced == f.acked {
		f.end = 0
	}
}

// StartClose starts closing the file, which nothing may use any more. It need not be
// awaited: what it can fail with is a server that is away while changes may not be
// on its disk, and a server's own error at close.
func (f *File) StartClose() *Call {
	k := f.call("close", pure, func(fd int64) wire.Request { return &wire.Close{FD: fd} })
	k.closing = true
	k.slow = slowDisk
	k.then = func(int64, error) { f.lane.forget(f) }
	return f.lane.start(k)
}

// forget takes a closed file out of the books.
func (l *lane) forget(f *File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.files, f)
	f.client.mu.Lock()
	defer f.client.mu.Unlock()
	delete(f.client.files, f)
}

// Pread reads up to len(p) bytes, at most wire.MaxData, at off. Fewer than asked
// for are not the end of the file; only zero, without an error, is.
func (f *File) Pread(ctx context.Context, p []byte, off int64) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := f.lane.run(ctx, f.pread(p, off))
	return int(n), err
}

// Pwrite writes all of p at off, or at the end of a file opened to append. After an
// error, n bytes were written, and more may have been.
func (f *File) Pwrite(ctx context.Context, p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := f.lane.run(ctx, f.pwrite(p[n:], off+int64(n)))
		if err != nil {
			return n, err
		}
		n += int(m)
	}
	return n, nil
}

// Fsync puts on the server's disk what was written. It fails when that may be gone.
func (f *File) Fsync(ctx context.Context) error {
	_, err := f.lane.run(ctx, f.fsync())
	return err
}

// Close closes the file and waits for the answer.
func (f *File) Close(ctx context.Context) error {
	_, err := f.StartClose().wait(ctx)
	return err
}

// Fstat asks for the file's attributes.
func (f *File) Fstat(ctx context.Context) (wire.Stat, error) { return f.lane.runStat(ctx, f.fstat()) }

func (f *File) fstat() *Call {
	return f.call("fstat", pure, func(fd int64) wire.Request { return &wire.Fstat{FD: fd} })
}

// Ftruncate makes the file length bytes long.
func (f *File) Ftruncate(ctx context.Context, length int64) error {
	k := f.call("ftruncate", once, func(fd int64) wire.Request { return &wire.Ftruncate{FD: fd, Length: length} })
	k.then = func(_ int64, err error) {
		if err == nil {
			f.changed(0)
			f.client.shrunk(func(g *File) bool { return g.opened.Dev == f.opened.Dev && g.opened.Ino == f.opened.Ino }, length)
		}
	}
	_, err := f.lane.run(ctx, k)
	return err
}

// Fchmod sets the file's permissions.
func (f *File) Fchmod(ctx context.Context, mode int64) error {
	k := f.call("fchmod", once, func(fd int64) wire.Request { return &wire.Fchmod{FD: fd, Mode: mode} })
	_, err := f.lane.run(ctx, k)
	return err
}
