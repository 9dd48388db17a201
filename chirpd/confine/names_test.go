package confine

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestUnlink(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("f", "")
		tr.symlink("f", "link")
		tr.mkdir("d")
		must(tr, tr.at("/link", false).Unlink())
		tr.content("f")
		must(tr, tr.at("/f", false).Unlink())
		wantErr(tr, "directory", tr.at("/d", false).Unlink(), unix.EISDIR)
		wantErr(tr, "root", tr.at("/", false).Unlink(), unix.EISDIR)
		wantErr(tr, "nothing", tr.at("/f", false).Unlink(), unix.ENOENT)
	})
}

// An open file outlives its name.
func TestUnlinkWhileOpen(t *testing.T) {
	tr := newTree(t, Options{})
	f, _, err := tr.at("/f", true).OpenFile(unix.O_RDWR|unix.O_CREAT, 0o644)
	must(t, err)
	defer f.Close()
	must(t, tr.at("/f", false).Unlink())
	if _, err := f.WriteAt([]byte("x"), 0); err != nil {
		t.Error(err)
	}
	if info, err := f.Stat(); err != nil || info.Nlink != 0 || info.Size != 1 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestRename(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("a/f", "f")
		tr.write("b/g", "g")
		tr.mkdir("empty", "b/full/x")
		tr.write("seems/.__acl", "old")
		tr.write("moved/.__acl", "new")
		tr.write("moved/f", "moved")
		rename := func(from, to string) error {
			return tr.at(from, false).Rename(tr.at(to, false))
		}
		must(tr, rename("/a/f", "/b/g"))
		if tr.content("b/g") != "f" || len(tr.names("a")) != 0 {
			tr.Error("the file did not move")
		}
		must(tr, rename("/a", "/empty"))
		must(tr, rename("/moved", "/seems"))
		if tr.content("seems/.__acl") != "new" || tr.content("seems/f") != "moved" {
			tr.Errorf("%q", tr.names("seems"))
		}
		wantErr(tr, "onto a full directory", rename("/empty", "/b/full"), unix.ENOTEMPTY)
		wantErr(tr, "a full one onto a full one", rename("/seems", "/b"), unix.ENOTEMPTY)
		wantErr(tr, "a file onto a directory", rename("/b/g", "/empty"), unix.EISDIR)
		wantErr(tr, "a directory onto a file", rename("/empty", "/b/g"), unix.ENOTDIR)
		wantErr(tr, "into itself", rename("/b", "/b/full/y"), unix.EINVAL)
		wantErr(tr, "the root", rename("/", "/x"), unix.EBUSY)
		wantErr(tr, "onto the root", rename("/b", "/"), unix.EBUSY)
		wantErr(tr, "nothing", rename("/none", "/x"), unix.ENOENT)
		if got := tr.names("/"); !slices.Equal(got, []string{"b", "empty", "seems"}) {
			tr.Errorf("left %q", got)
		}
	})
}

func TestPairsFromDifferentRoots(t *testing.T) {
	one, two := newTree(t, Options{}), newTree(t, Options{})
	one.write("f", "")
	wantErr(t, "rename", one.at("/f", false).Rename(two.at("/f", false)), unix.EXDEV)
	wantErr(t, "link", two.at("/f", false).Link(one.at("/f", false)), unix.EXDEV)
}

// Cases 4 and 17: a hard link is the same file; one made of a symbolic link is a
// symbolic link, so that what it points to is still walked to.
func TestLink(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("a", "a")
		tr.write("private/f", "f")
		tr.symlink("private/f", "l")
		must(tr, tr.at("/b", false).Link(tr.at("/a", false)))
		a, err1 := tr.at("/a", false).Stat()
		b, err2 := tr.at("/b", false).Stat()
		if err1 != nil || err2 != nil || a.id() != b.id() || a.Nlink != 2 {
			tr.Errorf("%+v, %+v", a, b)
		}
		must(tr, tr.at("/m", false).Link(tr.at("/l", false)))
		if info, err := tr.at("/m", false).Stat(); err != nil || !info.IsLink() {
			tr.Errorf("%+v, %v", info, err)
		}
		if got := tr.at("/m", true).DirPath(); got != "/private" {
			tr.Errorf("the new link leads to %s", got)
		}
		wantErr(tr, "taken", tr.at("/b", false).Link(tr.at("/l", false)), unix.EEXIST)
		wantErr(tr, "directory", tr.at("/d", false).Link(tr.at("/private", false)), unix.EPERM)
		wantErr(tr, "nothing", tr.at("/d", false).Link(tr.at("/none", false)), unix.ENOENT)
	})
}

func TestSymlinkAndReadlink(t *testing.T) {
	suite(t, func(tr *tree) {
		for _, target := range []string{"f", "/abs/f", "../../x//y/./", " a\n%\xff", string(slices.Repeat([]byte("t"), 4000))} {
			a := tr.at("/l", false)
			must(tr, a.Symlink(target))
			if got, err := a.Readlink(); got != target || err != nil {
				tr.Errorf("%q, %v; want %q", got, err, target)
			}
			wantErr(tr, "taken", a.Symlink("f"), unix.EEXIST)
			must(tr, a.Unlink())
		}
		tr.write("f", "")
		_, err := tr.at("/f", false).Readlink()
		wantErr(tr, "no link", err, unix.EINVAL)
		wantErr(tr, "root", tr.at("/", false).Symlink("f"), unix.EEXIST)
	})
}

// Case 1 at this level: each name is its own.
func TestOddNames(t *testing.T) {
	suite(t, func(tr *tree) {
		names := []string{"a b", "a%20b", "100%", "\xff", "ü", "a\nb", " ", "." + "_acl"}
		for _, name := range names {
			f, _, err := tr.at("/"+name, true).OpenFile(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o644)
			must(tr, err)
			_, err = f.WriteString(name)
			must(tr, err)
			must(tr, f.Close())
		}
		for _, name := range names {
			must(tr, tr.at("/"+name, false).Rename(tr.at("/"+name+"2", false)))
			if got, err := os.ReadFile(tr.real(name + "2")); string(got) != name || err != nil {
				tr.Errorf("%q: %q, %v", name, got, err)
			}
			must(tr, tr.at("/"+name+"2", false).Unlink())
		}
	})
}
