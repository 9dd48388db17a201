package fusefs

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
)

// model runs the same operations in two directories: on the mount, and on a local disk.
type model struct {
	t    *testing.T
	real bool // of a real server, which masks modes and replaces no directories
	dirs [2]string
	rnd  *rand.Rand
	open []pair // files that are open in both
	done []string
}

type pair struct {
	fds   [2]int
	name  string
	write bool
}

// TestModel draws operations at random, and compares what they say, and the trees that
// come of them. The seed is printed when something differs; FUSEFS_SEED=N draws the same
// again.
func TestModel(t *testing.T) {
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		seed, steps := rand.Uint64(), 800
		if n, err := strconv.ParseUint(os.Getenv("FUSEFS_SEED"), 10, 64); err == nil {
			seed = n
		}
		if p.Real {
			steps = 150 // it is slow
		}
		believe := func(_ *client.Options, o *Options, _ *MountOptions) {
			o.TTL = []time.Duration{0, time.Millisecond}[seed%2]
		}
		m := &model{t: t, real: p.Real, dirs: [2]string{mounted(t, p, p.Addr, believe).dir, t.TempDir()}, rnd: rand.New(rand.NewPCG(seed, 0))}
		t.Cleanup(m.closeAll)
		for i := range steps {
			if m.step(); t.Failed() {
				t.Fatalf("seed %d, step %d; the last steps were\n%s", seed, i, strings.Join(m.done[max(0, len(m.done)-30):], "\n"))
			}
		}
		m.closeAll()
		m.both("tree", func(i int) string { return m.tree(m.dirs[i]) })
		if t.Failed() {
			t.Fatalf("seed %d; the steps were\n%s", seed, strings.Join(m.done, "\n"))
		}
	})
}

func (m *model) closeAll() {
	for _, f := range m.open {
		m.both("close "+f.name, func(i int) string { return fmt.Sprint(unix.Close(f.fds[i])) })
	}
	m.open = nil
}

// both does something in both places and compares what comes of it.
func (m *model) both(what string, do func(i int) string) string {
	m.done = append(m.done, what)
	mount, local := do(0), do(1)
	if mount != local {
		m.t.Errorf("%s:\non the mount %s\non the disk  %s", what, mount, local)
	}
	return mount
}

var modelNames = []string{"a", "b", "c", "d/a", "d/b", "d/e/a", "d/e/c", "f/a", "f/b"}

func (m *model) name() string { return modelNames[m.rnd.IntN(len(modelNames))] }

func (m *model) dir() string { return []string{"d", "d/e", "f", "g"}[m.rnd.IntN(4)] }

// step draws one operation.
func (m *model) step() {
	a, b := m.name(), m.name()
	at := func(i int, name string) string { return filepath.Join(m.dirs[i], name) }
	switch m.rnd.IntN(16) {
	case 0, 1:
		dir := m.dir()
		m.both("mkdir "+dir, func(i int) string { return fmt.Sprint(unix.Mkdir(at(i, dir), 0o755)) })
	case 2:
		dir := m.dir()
		m.both("rmdir "+dir, func(i int) string { return fmt.Sprint(unix.Rmdir(at(i, dir))) })
	case 3:
		m.both("unlink "+a, func(i int) string { return fmt.Sprint(unix.Unlink(at(i, a))) })
	case 4:
		m.both("rename "+a+" "+b, func(i int) string { return fmt.Sprint(unix.Rename(at(i, a), at(i, b))) })
	case 5:
		from, to := m.dir(), m.dir()
		if m.real {
			return
		}
		m.both("rename "+from+" "+to, func(i int) string { return fmt.Sprint(unix.Rename(at(i, from), at(i, to))) })
	case 6:
		m.both("link "+a+" "+b, func(i int) string { return fmt.Sprint(unix.Link(at(i, a), at(i, b))) })
	case 7:
		m.both("symlink "+a, func(i int) string { return fmt.Sprint(unix.Symlink("target", at(i, a))) })
	case 8:
		size := m.rnd.Int64N(200_000)
		m.both(fmt.Sprintf("truncate %s %d", a, size), func(i int) string { return fmt.Sprint(unix.Truncate(at(i, a), size)) })
	case 9:
		mode := uint32(0o600 + m.rnd.IntN(0o100))
		m.both(fmt.Sprintf("chmod %s %o", a, mode), func(i int) string { return fmt.Sprint(unix.Chmod(at(i, a), mode)) })
	case 10:
		m.both("stat "+a, func(i int) string { return m.describe(at(i, a)) })
	case 11:
		dir := m.dir()
		m.both("list "+dir, func(i int) string { return listing(at(i, dir)) })
	case 12, 13:
		m.openOne(a)
	default:
		m.useOne()
	}
}

// openOne opens a file in one of several ways, and closes one where too many are open.
func (m *model) openOne(name string) {
	flags := []int{
		unix.O_RDONLY, unix.O_RDWR, unix.O_WRONLY, unix.O_RDWR | unix.O_CREAT, unix.O_RDWR | unix.O_CREAT | unix.O_EXCL,
		unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC, unix.O_RDWR | unix.O_CREAT | unix.O_APPEND,
	}[m.rnd.IntN(7)] | unix.O_NOFOLLOW
	f := pair{name: name, write: flags&unix.O_ACCMODE != unix.O_RDONLY}
	said := m.both(fmt.Sprintf("open %s %#x", name, flags), func(i int) string {
		fd, err := unix.Open(filepath.Join(m.dirs[i], name), flags, 0o644)
		f.fds[i] = fd
		return fmt.Sprint(err)
	})
	if said == "<nil>" {
		m.open = append(m.open, f)
	}
	if len(m.open) > 6 {
		f := m.open[0]
		m.open = m.open[1:]
		m.both("close "+f.name, func(i int) string { return fmt.Sprint(unix.Close(f.fds[i])) })
	}
}

// useOne does something with an open file.
func (m *model) useOne() {
	if len(m.open) == 0 {
		return
	}
	f := m.open[m.rnd.IntN(len(m.open))]
	off := m.rnd.Int64N(150_000)
	length := 1 + m.rnd.IntN(20_000)
	what := fmt.Sprintf("%s: %%s %d at %d", f.name, length, off)
	data := []byte(strings.Repeat(fmt.Sprintf("%d ", off), length))[:length]
	switch m.rnd.IntN(6) {
	case 0, 1:
		m.both(fmt.Sprintf(what, "write"), func(i int) string { return fmt.Sprint(unix.Pwrite(f.fds[i], data, off)) })
	case 2:
		m.both(fmt.Sprintf(what, "ftruncate"), func(i int) string { return fmt.Sprint(unix.Ftruncate(f.fds[i], off)) })
	case 3:
		m.both(fmt.Sprintf(what, "fstat"), func(i int) string { return m.describeFD(f.fds[i]) })
	case 4:
		m.both(fmt.Sprintf(what, "fsync"), func(i int) string { return fmt.Sprint(unix.Fsync(f.fds[i])) })
	default:
		m.both(fmt.Sprintf(what, "read"), func(i int) string {
			buf := make([]byte, length)
			n, err := unix.Pread(f.fds[i], buf, off)
			return fmt.Sprintf("%d %v %x", n, err, sha256.Sum256(buf[:max(n, 0)]))
		})
	}
}

func (m *model) describe(path string) string {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	return m.describeStat(&st, err)
}

func (m *model) describeFD(fd int) string {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return m.describeStat(&st, err)
}

func (m *model) describeStat(st *unix.Stat_t, err error) string {
	if err != nil {
		return err.Error()
	}
	if m.real {
		st.Mode &^= 0o177
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return fmt.Sprintf("%o", st.Mode)
	}
	return fmt.Sprintf("%o links %d size %d", st.Mode, st.Nlink, st.Size)
}

func listing(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Sprint(unwrap(err))
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	sort.Strings(names)
	return fmt.Sprint(names)
}

func unwrap(err error) error {
	if e, ok := err.(*os.PathError); ok {
		return e.Err
	}
	return err
}

// tree is all that is in a directory, with what files hold.
func (m *model) tree(dir string) string {
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if rel == "." {
			return nil
		}
		fmt.Fprintf(&b, "%s %s", rel, m.describe(path))
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			fmt.Fprintf(&b, " %x %v", sha256.Sum256(data), err)
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			fmt.Fprintf(&b, " -> %s %v", target, err)
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		m.t.Error(err)
	}
	return b.String()
}
