package cvmfs

import (
	"cmp"
	"encoding/binary"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// defaultQuota is CernVM-FS's, in megabytes.
const defaultQuota = 4000

// keepPart is how much of the quota remains used after an eviction, in percent.
const keepPart = 75

// account is how many bytes of the quota a file takes.
func account(size int64) int64 { return (size + 4095) &^ 4095 }

// added counts a new file of size bytes, and evicts others when there are too many.
// The count is shared by all processes, and only near the truth: an eviction counts
// anew.
func (s *store) added(size int64) {
	used, err := s.count(func(n int64) int64 { return n + account(size) })
	if err != nil || s.quota < 0 || used <= s.quota {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.evicting {
		return
	}
	s.evicting = true
	s.work.Go(func() {
		s.evict(func(int64) int64 { return s.quota / 100 * keepPart })
		s.mu.Lock()
		defer s.mu.Unlock()
		s.evicting = false
	})
}

// count changes the shared number, which is guarded by a lock on its file.
func (s *store) count(change func(int64) int64) (int64, error) {
	s.counting.Lock()
	defer s.counting.Unlock()
	fd := int(s.usage.Fd())
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return 0, err
	}
	defer unix.Flock(fd, unix.LOCK_UN)
	var b [8]byte
	_, _ = s.usage.ReadAt(b[:], 0) // a new file counts from zero
	n := max(change(int64(binary.LittleEndian.Uint64(b[:]))), 0)
	binary.LittleEndian.PutUint64(b[:], uint64(n))
	_, err := s.usage.WriteAt(b[:], 0)
	return n, err
}

// cached is a file of the store.
type cached struct {
	path string
	size int64
	used time.Time
}

// evict removes the objects that were not used for longest until no more bytes are
// left than keep says, which is told how many there are. It reports whether there is
// more room now. One process does it at a time; the others wait for it. Files that are
// open stay readable for those who have them open.
func (s *store) evict(keep func(total int64) int64) bool {
	lock, err := s.place.open("evict.lock", os.O_RDWR|os.O_CREATE)
	if err != nil {
		return false
	}
	defer lock.Close()
	if held, err := tryLock(lock); err != nil || !held {
		return err == nil && unix.Flock(int(lock.Fd()), unix.LOCK_EX) == nil
	}
	files, total := s.files()
	gone := int64(0)
	slices.SortFunc(files, func(a, b cached) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	for _, f := range files {
		if total-gone <= keep(total) {
			break
		}
		if s.remove(f.path) == nil {
			gone += f.size
		}
	}
	_, _ = s.count(func(int64) int64 { return total - gone })
	s.log.Info("cvmfs: the cache was over its quota", "removed", gone, "left", total-gone)
	return gone > 0
}

// files lists all objects.
func (s *store) files() (files []cached, total int64) {
	dirs, _ := s.names("objects")
	for _, dir := range dirs {
		names, _ := s.names("objects/" + dir)
		for _, name := range names {
			path := "objects/" + dir + "/" + name
			var st unix.Stat_t
			if unix.Fstatat(int(s.dir.Fd()), path, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // removed meanwhile
			}
			f := cached{path, account(st.Size), time.Unix(st.Mtim.Unix())}
			files = append(files, f)
			total += f.size
		}
	}
	return files, total
}
