package installer

import (
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// closer writes small files, gives all files their times and closes them, in a
// goroutine of its own, while the next ones are made: most of a small file's system
// calls. It is begun by newCloser and ended by finish.
type closer struct {
	batch  []openFile
	full   chan []openFile // closed by finish
	done   chan error
	failed atomic.Bool // then add takes no more
	bufs   sync.Pool   // of *[smallFile]byte
}

// openFile is a file that is made. path is for messages; data, of which size bytes
// count, is still to be written, and is nil when all is.
type openFile struct {
	fd    int
	mtime unix.Timespec
	path  string
	data  *[smallFile]byte
	size  int
}

// smallFile is the size up to which a file's content is handed over to the closer,
// in bytes. closeBatch is how many files are handed over at a time; at most four
// times as many are open, with 4 MiB of content.
const (
	smallFile  = 32 << 10
	closeBatch = 32
)

func newCloser() *closer {
	c := &closer{full: make(chan []openFile, 2), done: make(chan error, 1)}
	c.bufs.New = func() any { return new([smallFile]byte) }
	go func() { c.done <- c.run() }()
	return c
}

// buffer is for the content of a small file; add takes it back.
func (c *closer) buffer() *[smallFile]byte { return c.bufs.Get().(*[smallFile]byte) }

// run is the goroutine. It closes every file, and returns the first error.
func (c *closer) run() (first error) {
	for batch := range c.full {
		for _, f := range batch {
			err := f.finish()
			if f.data != nil {
				c.bufs.Put(f.data)
			}
			if err != nil && first == nil {
				first = &UnpackError{Member: f.path, Err: &os.PathError{Op: "write", Path: f.path, Err: err}}
				c.failed.Store(true)
			}
		}
	}
	return first
}

func (f openFile) finish() (err error) {
	if f.data != nil {
		err = write(f.fd, f.data[:f.size])
	}
	if terr := futimens(f.fd, f.mtime); err == nil {
		err = terr
	}
	if cerr := unix.Close(f.fd); err == nil && cerr != unix.EINTR {
		err = cerr
	}
	return err
}

// add takes over a file, and reports false when an earlier one has failed: then
// finish knows why, and nothing more need be made.
func (c *closer) add(f openFile) bool {
	c.batch = append(c.batch, f)
	if len(c.batch) == closeBatch {
		c.full <- c.batch
		c.batch = make([]openFile, 0, closeBatch)
	}
	return !c.failed.Load()
}

// finish waits until all files are closed.
func (c *closer) finish() error {
	c.full <- c.batch
	close(c.full)
	return <-c.done
}
