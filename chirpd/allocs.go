package chirpd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/confine"
)

// allocs are the allocations of one export: directories that have so many bytes and no
// more. A directory's bytes are the lengths of the files below it, each file once; an
// allocation below another takes its whole size from that one.
//
// On disk are only the sizes, in one file that is replaced whole; what is in use is
// counted when the server starts, so that it is right after any crash. While it runs,
// whoever makes a file longer or shorter, or ends it, holds that file's grown, and so
// sees its length change by nobody else. Changes that others make to the tree are counted
// at the next start.
type allocs struct {
	ex   *export
	file string // of the sizes; empty: nothing is kept, and mkalloc is refused
	log  *slog.Logger
	any  atomic.Bool // there are allocations; without, all this costs nothing

	names  turns[string] // of those who open, replace or remove a file, by its path
	change sync.Mutex    // serialises changes of the list; held across the disk
	mu     sync.Mutex    // guards list, files and what they hold; not held across the disk
	list   []*allocation
	files  map[dirID]*grown
}

// allocation is a directory with its own space.
type allocation struct {
	dir        string // within the export
	size, used int64  // bytes; used has the sizes of allocations right below
}

// grown is a file in an allocation that somebody has open for writing, or changes.
type grown struct {
	sync.Mutex // held while its length changes
	id         dirID
	in         *allocation
	users      int   // guarded by allocs.mu, with the rest
	gone       bool  // it has no name any more, and goes with its last user
	length     int64 // when gone
}

// errNoRoom is the answer to who wants more than is allocated.
func errNoRoom(a *allocation) error {
	return fmt.Errorf("the allocation of %s is full: %w", a.dir, unix.EDQUOT)
}

// allocState is the form of the file.
type allocState struct {
	Dir  string
	Size int64
}

// open reads the sizes and counts what is in use.
func (q *allocs) open(s *Server, ex *export) error {
	q.ex, q.log, q.files = ex, s.conf.Log, make(map[dirID]*grown)
	var state []allocState
	if s.conf.StateDir != "" {
		q.file = filepath.Join(s.conf.StateDir, "allocations"+strings.ReplaceAll(ex.name, "/", "-")+".json")
		text, err := os.ReadFile(q.file)
		if err == nil {
			err = json.Unmarshal(text, &state)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("allocations %s: %w", q.file, err)
		}
	}
	if s.conf.RootQuota > 0 {
		if q.file != "" && !exists(q.file) {
			left, err := q.left()
			if err != nil {
				return fmt.Errorf("allocations that a chirp_server left: %w", err)
			}
			state = left
		}
		state = slices.DeleteFunc(state, func(a allocState) bool { return a.Dir == "/" })
		state = append(state, allocState{"/", s.conf.RootQuota})
	}
	for _, a := range state {
		if a.Dir != "/" || s.conf.RootQuota > 0 {
			q.list = append(q.list, &allocation{dir: a.Dir, size: a.Size})
		}
	}
	q.list = slices.DeleteFunc(q.list, func(a *allocation) bool { return !q.isThere(a) })
	q.sorted()
	if err := q.count(); err != nil || len(q.list) == 0 || q.file == "" {
		return err
	}
	return q.save() // what was left is not looked for again
}

func exists(file string) bool {
	_, err := os.Lstat(file)
	return err == nil
}

// leftName is the file in which a real chirp_server keeps a directory's allocation: its
// size and what is in use, a line each.
const leftName = confine.PrivatePrefix + "alloc"

// left finds the allocations that a real chirp_server left in the export.
func (q *allocs) left() (list []allocState, err error) {
	for todo := []string{"/"}; len(todo) > 0; {
		dir := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		err := q.ex.root.Do(dir, false, func(a *confine.At) error {
			inside, err := a.Enter()
			if err != nil {
				return err
			}
			defer inside.Close()
			if text, _, err := inside.ReadPrivate(leftName, 1024); err == nil {
				line, _, _ := strings.Cut(string(text), "\n")
				if n, err := strconv.ParseInt(line, 10, 64); err == nil && n >= 0 {
					list = append(list, allocState{dir, n})
				}
			}
			return inside.ReadDir(true, func(e *confine.Entry) error {
				if e.Info.IsDir() {
					todo = append(todo, join(dir, string(e.Name)))
				}
				return nil
			})
		})
		if err != nil && !isGone(err) {
			return nil, err
		}
	}
	return list, nil
}

func (q *allocs) isThere(a *allocation) bool {
	err := q.ex.root.Do(a.dir, false, func(at *confine.At) error {
		info, err := at.Stat()
		if err == nil && !info.IsDir() {
			err = unix.ENOTDIR
		}
		return err
	})
	if err != nil {
		q.log.Warn("an allocation ends, as its directory is not there", "dir", a.dir, "err", err)
	}
	return err == nil
}

// sorted brings the deepest directories to the front.
func (q *allocs) sorted() {
	slices.SortFunc(q.list, func(a, b *allocation) int { return len(b.dir) - len(a.dir) })
	q.any.Store(len(q.list) > 0)
}

// count works out what is in use everywhere.
func (q *allocs) count() error {
	for _, a := range q.list {
		if above := q.above(a); above != nil {
			above.used += a.size
		}
	}
	for _, a := range q.list {
		if q.above(a) != nil {
			continue // counted with that
		}
		sum, err := q.measure(a.dir)
		if err != nil {
			return fmt.Errorf("counting what is in use in %s: %w", a.dir, err)
		}
		for in, n := range sum {
			in.used += n
		}
	}
	return nil
}

// of is the allocation that holds a path within the export, or nil.
func (q *allocs) of(path string) *allocation {
	if !q.any.Load() {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.holder(path)
}

func (q *allocs) holder(path string) *allocation {
	for _, a := range q.list {
		if isBelow(path, a.dir) {
			return a
		}
	}
	return nil
}

// above is the allocation that a takes its size from, or nil.
func (q *allocs) above(a *allocation) *allocation {
	if a.dir == "/" {
		return nil
	}
	return q.holder(filepath.Dir(a.dir))
}

// isBelow says whether path is dir or lies in it.
func isBelow(path, dir string) bool {
	if dir == "/" {
		return true
	}
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// take sets n bytes aside, or gives them back when n is negative, which never fails.
func (q *allocs) take(a *allocation, n int64) error {
	if a == nil || n == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > 0 && n > a.size-a.used {
		return errNoRoom(a)
	}
	a.used = max(0, a.used+n)
	return nil
}

// settle adds n bytes that are there whether there is room or not, or takes them away.
func (q *allocs) settle(a *allocation, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	a.used = max(0, a.used+n)
}

// hold gets the grown of a file; release gives it back.
func (q *allocs) hold(a *allocation, info *confine.Info) *grown {
	id := dirID{info.Dev, info.Ino}
	q.mu.Lock()
	defer q.mu.Unlock()
	g := q.files[id]
	if g == nil {
		g = &grown{id: id, in: a}
		q.files[id] = g
	}
	g.users++
	return g
}

func (q *allocs) release(g *grown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if g.users--; g.users > 0 {
		return
	}
	if q.files[g.id] == g {
		delete(q.files, g.id)
	}
	if g.gone {
		g.in.used = max(0, g.in.used-g.length)
	}
}

// grow runs change on an open file, after which it has at most end(length before) bytes,
// and counts what that made of it.
func (q *allocs) grow(g *grown, f *confine.File, end func(int64) int64, change func() error) error {
	g.Lock()
	defer g.Unlock()
	before, err := f.Stat()
	if err != nil {
		return err
	}
	more := max(0, end(before.Size)-before.Size)
	if err := q.take(g.in, more); err != nil {
		return err
	}
	failed := change()
	after, err := f.Stat()
	if err != nil { // it cannot be told: as much as may be
		return errors.Join(failed, err)
	}
	q.settle(g.in, after.Size-before.Size-more)
	q.mu.Lock()
	g.length = after.Size
	q.mu.Unlock()
	return failed
}

// save puts the sizes on disk.
func (q *allocs) save() error {
	q.mu.Lock()
	state := make([]allocState, 0, len(q.list))
	for _, a := range q.list {
		if a.dir != "/" {
			state = append(state, allocState{a.dir, a.size})
		}
	}
	q.mu.Unlock()
	text, err := json.Marshal(state)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(q.file), 0o700)
	}
	if err != nil {
		return err
	}
	return renameio.WriteFile(q.file, append(text, '\n'), 0o600, renameio.IgnoreUmask())
}

// measure adds up the files below a directory of the export by the allocation that each
// lies in. A file with several names counts once.
func (q *allocs) measure(dir string) (map[*allocation]int64, error) {
	sum := make(map[*allocation]int64)
	seen := make(map[dirID]bool)
	for todo := []string{dir}; len(todo) > 0; {
		dir, todo = todo[len(todo)-1], todo[:len(todo)-1]
		in := q.of(dir)
		err := q.ex.root.Do(dir, false, func(a *confine.At) error {
			return a.ReadDir(true, func(e *confine.Entry) error {
				id := dirID{e.Info.Dev, e.Info.Ino}
				switch {
				case e.Info.IsDir():
					todo = append(todo, join(dir, string(e.Name)))
				case e.Info.IsRegular() && in != nil && !seen[id]:
					sum[in] += e.Info.Size
					seen[id] = e.Info.Nlink > 1
				}
				return nil
			})
		})
		if err != nil && !isGone(err) {
			return nil, err
		}
	}
	return sum, nil
}
