package installer

import (
	"os"

	"golang.org/x/sys/unix"
)

// closer gives written files their times and closes them, in a goroutine of its
// own, while the next ones are written: half of a small file's system calls. It is
// begun by newCloser and ended by finish.
type closer struct {
	batch []openFile
	full  chan []openFile // closed by finish
	done  chan error
}

// openFile is a file that is written; path is for messages.
type openFile struct {
	fd    int
	mtime unix.Timespec
	path  string
}

// closeBatch is how many files are handed over at a time; at most four times as
// many are open.
const closeBatch = 32

func newCloser() *closer {
	c := &closer{full: make(chan []openFile, 2), done: make(chan error, 1)}
	go func() { c.done <- c.run() }()
	return c
}

// run is the goroutine. It closes every file, and returns the first error.
func (c *closer) run() (first error) {
	for batch := range c.full {
		for _, f := range batch {
			if err := f.finish(); err != nil && first == nil {
				first = &UnpackError{Member: f.path, Err: &os.PathError{Op: "write", Path: f.path, Err: err}}
			}
		}
	}
	return first
}

func (f openFile) finish() error {
	err := futimens(f.fd, f.mtime)
	if cerr := unix.Close(f.fd); err == nil && cerr != unix.EINTR {
		err = cerr
	}
	return err
}

// add takes over a file.
func (c *closer) add(f openFile) {
	c.batch = append(c.batch, f)
	if len(c.batch) == closeBatch {
		c.full <- c.batch
		c.batch = make([]openFile, 0, closeBatch)
	}
}

// finish waits until all files are closed.
func (c *closer) finish() error {
	c.full <- c.batch
	close(c.full)
	return <-c.done
}
