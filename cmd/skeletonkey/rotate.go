package main

import (
	"os"
	"sync"
)

// rotatingFile is a log that is begun anew when it has reached a size; the one before is
// kept beside it, as NAME.old.
type rotatingFile struct {
	path string
	max  int64 // bytes; 0: never

	mu   sync.Mutex // guards what follows; held across the disk, as lines must not mix
	file *os.File
	size int64
}

func openRotating(path string, max int64) (*rotatingFile, error) {
	r := &rotatingFile{path: path, max: max}
	return r, r.open()
}

func (r *rotatingFile) open() error {
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	r.file, r.size = f, info.Size()
	return nil
}

// Write appends a line. What cannot be rotated goes on growing: nothing of it is lost.
func (r *rotatingFile) Write(line []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.max > 0 && r.size > 0 && r.size+int64(len(line)) > r.max {
		old := r.file
		if os.Rename(r.path, r.path+".old") == nil && r.open() == nil {
			old.Close()
		}
	}
	n, err := r.file.Write(line)
	r.size += int64(n)
	return n, err
}

// Close ends the log.
func (r *rotatingFile) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file.Close()
}
