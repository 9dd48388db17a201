package cvmfs

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// lockPause is between two looks at what another process fetches; it grows up to
	// maxLockPause.
	lockPause    = 2 * time.Millisecond
	maxLockPause = 50 * time.Millisecond
	// staleTemp is the age at which a temporary file without a lock is rubbish.
	staleTemp = 24 * time.Hour
)

// begin returns the temporary file into which an object is to be written; its lock is
// ours and goes with it. It returns nil when the object has come into the store.
func (s *store) begin(ctx context.Context, o object, patience time.Duration) (*os.File, error) {
	tmp := "tmp/" + fileName(o)
	pause := lockPause
	var size int64
	grown := time.Now()
	for {
		if s.exists(s.path(o)) {
			return nil, nil
		}
		f, err := s.place.open(tmp, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		held, err := tryLock(f)
		if err != nil { // a file system without locks: fetched twice is better than not at all
			f.Close()
			return s.alone(o)
		}
		if held {
			if s.is(tmp, f) {
				return s.reset(f, tmp, o)
			}
			f.Close()
			continue
		}
		if st, err := f.Stat(); err == nil && st.Size() != size {
			size, grown = st.Size(), time.Now()
		}
		f.Close()
		if time.Since(grown) > patience {
			return s.alone(o)
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
		pause = min(2*pause, maxLockPause)
	}
}

// reset empties a temporary file that is ours, unless it is no longer needed.
func (s *store) reset(f *os.File, tmp string, o object) (*os.File, error) {
	if s.exists(s.path(o)) {
		_ = s.remove(tmp)
		f.Close()
		return nil, nil
	}
	if st, err := f.Stat(); err == nil && st.Size() == 0 {
		return f, nil
	}
	if err := f.Truncate(0); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// alone makes a temporary file that nobody else knows.
func (s *store) alone(o object) (*os.File, error) {
	return s.place.open(fmt.Sprintf("tmp/%s.%d.%d", fileName(o), os.Getpid(), time.Now().UnixNano()), os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// sweep removes the temporary files of processes that were killed.
func (s *store) sweep() {
	names, err := s.names("tmp")
	if err != nil {
		return
	}
	for _, name := range names {
		tmp := "tmp/" + name
		f, err := s.place.open(tmp, os.O_RDWR)
		if err != nil {
			continue
		}
		st, err := f.Stat()
		old := err == nil && time.Since(st.ModTime()) > staleTemp
		locks := !strings.Contains(strings.TrimSuffix(name, plainExt), ".") // alone makes files that nobody locks
		if held, err := tryLock(f); (held && locks || old && (held || err != nil)) && s.is(tmp, f) {
			_ = s.remove(tmp)
		}
		f.Close()
	}
}
