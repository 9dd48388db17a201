package confine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// list gives the names of a directory in order.
func (tr *tree) list(path string, withInfo bool) []string {
	tr.Helper()
	names := []string{}
	must(tr, tr.at(path, true).ReadDir(withInfo, func(e *Entry) error {
		names = append(names, string(e.Name))
		return nil
	}))
	slices.Sort(names)
	return names
}

func TestReadDir(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("d/f", "abc")
		tr.write("d/.__acl", "unix:* rl\n")
		tr.write("d/.hidden", "")
		tr.mkdir("d/sub", "d/.__private")
		tr.symlink("f", "d/link")
		odd := []string{"a b", "a%20b", "100%", "\xff", "line\nfeed", "\\", "...", "-"}
		for _, name := range odd {
			tr.write("d/"+name, "")
		}
		want := append([]string{"f", ".hidden", "sub", "link"}, odd...)
		slices.Sort(want)
		for _, withInfo := range []bool{false, true} {
			if d := cmp.Diff(want, tr.list("/d", withInfo)); d != "" {
				tr.Errorf("with stats %v: %s", withInfo, d)
			}
		}
		for _, withInfo := range []bool{false, true} {
			must(tr, tr.at("/d", true).ReadDir(withInfo, func(e *Entry) error {
				info, err := tr.at("/d/"+string(e.Name), false).Stat()
				if err != nil || e.Info.Ino != info.Ino || e.Info.kind() != info.kind() {
					tr.Errorf("%q: %+v, alone %+v, %v", e.Name, e.Info, info, err)
				}
				info.Atime = e.Info.Atime // a link's, which Stat does not touch but walks do
				if withInfo && e.Info != info {
					tr.Errorf("%q: %+v, alone %+v", e.Name, e.Info, info)
				}
				return nil
			}))
		}
		wantErr(tr, "a link", tr.at("/d/link", false).ReadDir(false, nil), ErrChanged)
		wantErr(tr, "a file", tr.at("/d/f", false).ReadDir(false, nil), unix.ENOTDIR)
		wantErr(tr, "nothing", tr.at("/d/none", false).ReadDir(false, nil), unix.ENOENT)
	})
}

func TestReadDirStops(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("a", "")
	tr.write("b", "")
	own, calls := errors.New("enough"), 0
	err := tr.at("/", true).ReadDir(false, func(*Entry) error { calls++; return own })
	if err != own || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestDotAndDotDot(t *testing.T) {
	tr := newTree(t, Options{})
	tr.mkdir("a/b")
	a := tr.at("/a/b", true)
	self, err1 := a.Stat()
	parent, err2 := a.StatDir()
	up, err3 := tr.at("/a", true).Stat()
	if errors.Join(err1, err2, err3) != nil || parent.Ino != up.Ino || self.Ino == parent.Ino {
		t.Errorf("%v %v %v: %v %v", err1, err2, err3, parent, up)
	}
	root := tr.at("/", true)
	self, err1 = root.Stat()
	parent, err2 = root.StatDir()
	if errors.Join(err1, err2) != nil || self.Ino != parent.Ino {
		t.Errorf("the root's parent: %v, %v", self, parent)
	}
}

// Memory does not grow with the directory, and no entry costs an allocation.
func TestReadDirOfManyEntries(t *testing.T) {
	inMemory(t)
	tr := newTree(t, Options{})
	const many = 20000
	d, err := os.Open(tr.dir)
	must(t, err)
	defer d.Close()
	for i := range many {
		must(t, unix.Mknodat(int(d.Fd()), fmt.Sprintf("entry-%06d", i), unix.S_IFREG|0o644, 0))
	}
	root := tr.at("/", true)
	for _, withInfo := range []bool{false, true} {
		seen := make([]bool, many)
		count := func(e *Entry) error {
			var n int
			for _, c := range e.Name[len("entry-"):] {
				n = 10*n + int(c-'0')
			}
			if withInfo && !e.Info.IsRegular() {
				t.Errorf("%s: %+v", e.Name, e.Info)
			}
			seen[n] = true
			return nil
		}
		allocs := testing.AllocsPerRun(1, func() { must(t, root.ReadDir(withInfo, count)) })
		if allocs > 50 || slices.Contains(seen, false) {
			t.Errorf("with stats %v: %v allocations, every entry seen: %v", withInfo, allocs, !slices.Contains(seen, false))
		}
	}
	// Names vanish while they are listed, and each that stays is seen once.
	survivors := map[string]int{}
	must(t, root.ReadDir(true, func(e *Entry) error {
		survivors[string(e.Name)]++
		if e.Name[len(e.Name)-1]%2 == 0 {
			return os.Remove(tr.real(string(e.Name)))
		}
		return nil
	}))
	for name, n := range survivors {
		if n != 1 {
			t.Errorf("%s was seen %d times", name, n)
		}
	}
	if len(survivors) != many {
		t.Errorf("%d of %d seen", len(survivors), many)
	}
	must(t, root.ReadDir(false, func(e *Entry) error { return os.Remove(tr.real(string(e.Name))) }))
}

func TestMkdir(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("f", "")
		tr.symlink("none", "dangling")
		must(tr, tr.at("/d", true).Mkdir(0o4757))
		acl := Private{Name: ".__acl", Data: []byte("unix:bob rl\n")}
		must(tr, tr.at("/d/sub", true).Mkdir(0o700, acl))
		for path, mode := range map[string]uint32{"/d": 0o757, "/d/sub": 0o700} {
			if info, err := tr.at(path, true).Stat(); err != nil || info.Mode != unix.S_IFDIR|mode {
				tr.Errorf("%s: %o, %v", path, info.Mode, err)
			}
		}
		if got := tr.content("d/sub/.__acl"); got != string(acl.Data) {
			tr.Errorf("ACL %q", got)
		}
		for _, taken := range []string{"/d", "/f", "/", "/dangling"} {
			wantErr(tr, taken, tr.at(taken, false).Mkdir(0o755, acl), unix.EEXIST)
		}
		wantErr(tr, "visible file", tr.at("/d/sub", true).Mkdir(0o755, Private{Name: "visible"}), unix.EINVAL)
		wantErr(tr, "NUL", tr.at("/a\x00", false).Mkdir(0o755), unix.EINVAL)
		wantErr(tr, "long", tr.at("/"+strings.Repeat("n", 256), false).Mkdir(0o755), unix.ENAMETOOLONG)
		if got := tr.names("/"); len(got) != 3 {
			tr.Errorf("left behind: %q", got)
		}
	})
}

func TestMkdirKeepsSetGroupID(t *testing.T) {
	tr := newTree(t, Options{})
	must(t, unix.Chmod(tr.dir, 0o2755))
	must(t, tr.at("/d", true).Mkdir(0o750))
	if info, err := tr.at("/d", true).Stat(); err != nil || info.Mode&0o7777 != 0o2750 {
		t.Errorf("%o, %v", info.Mode, err)
	}
}

// The ways for file systems that cannot rename without replacing.
func TestRenameNew(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("from", "new")
	tr.write("to", "old")
	root := tr.at("/", false)
	wantErr(t, "taken", renameNew(root.fd, "from", "to"), unix.EEXIST)
	must(t, renameNew(root.fd, "from", "other"))
	if tr.content("to") != "old" || tr.content("other") != "new" {
		t.Errorf("%q", tr.names("/"))
	}
}

func TestMountsBelowBelongToTheTree(t *testing.T) {
	needRoot(t, "mount")
	suite(t, func(tr *tree) {
		tr.mkdir("m")
		tr.write(".__acl", "root")
		if err := unix.Mount("tmpfs", tr.real("m"), "tmpfs", 0, "size=1m"); err != nil {
			tr.Skipf("no mounts here: %v", err)
		}
		tr.Cleanup(func() { must(tr, unix.Unmount(tr.real("m"), unix.MNT_DETACH)) })
		must(tr, tr.at("/m/d", true).Mkdir(0o755))
		tr.write("m/d/f", "on tmpfs")
		tr.symlink("../../m/d/f", "m/d/link")
		if got, err := tr.get("/m/d/link"); got != "on tmpfs" || err != nil {
			tr.Errorf("%q, %v", got, err)
		}
		above, err := tr.at("/m/d/f", true).Nearest(".__acl")
		must(tr, err)
		if above.Path() != "/" {
			tr.Error(above.Path())
		}
		above.Close()
		st, err := tr.at("/m", true).Statfs()
		if err != nil || st.Type != unix.TMPFS_MAGIC {
			tr.Errorf("%x, %v", st.Type, err)
		}
		wantErr(tr, "rename", tr.at("/m/d/f", true).Rename(tr.at("/f", true)), unix.EXDEV)
		wantErr(tr, "rmdir", tr.at("/m", true).Rmdir(), unix.EBUSY)
		wantErr(tr, "rmall", tr.at("/m", true).RemoveAll(tr.Context(), nil), unix.EBUSY)
	})
}
