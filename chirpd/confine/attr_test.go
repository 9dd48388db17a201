package confine

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestChmod(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("f", "")
		tr.mkdir("d")
		tr.symlink("f", "l")
		for _, c := range []struct {
			path       string
			mode, want uint32
		}{
			{"/f", 0o6755, 0o755}, {"/f", 0o0000, 0}, {"/f", 0o640, 0o640},
			{"/d", 0o7751, 0o3751}, {"/", 0o700, 0o700},
		} {
			must(tr, tr.at(c.path, true).Chmod(c.mode))
			if info, err := tr.at(c.path, true).Stat(); err != nil || info.Mode&0o7777 != c.want {
				tr.Errorf("%s: %o, %v; want %o", c.path, info.Mode, err, c.want)
			}
			// The way without fchmodat2.
			must(tr, tr.at(c.path, true).chmodProc(0o711))
			if info, err := tr.at(c.path, true).Stat(); err != nil || info.Mode&0o777 != 0o711 {
				tr.Errorf("%s: %o, %v", c.path, info.Mode, err)
			}
		}
		wantErr(tr, "a link", tr.at("/l", false).Chmod(0o600), unix.EOPNOTSUPP)
		wantErr(tr, "a link", tr.at("/l", false).chmodProc(0o600), unix.EOPNOTSUPP)
		wantErr(tr, "nothing", tr.at("/none", false).Chmod(0o600), unix.ENOENT)
		wantErr(tr, "nothing", tr.at("/none", false).chmodProc(0o600), unix.ENOENT)
		tr.proc = false
		wantErr(tr, "without /proc", tr.at("/f", true).chmodProc(0o600), ErrNoProc)
	})
}

// Case 27: times before 1970, after 2106, and parts of a second.
func TestUtimens(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("f", "")
		tr.mkdir("d")
		tr.symlink("f", "l")
		for _, path := range []string{"/f", "/d", "/l", "/"} {
			for _, when := range []unix.Timespec{
				{Sec: -1}, {Sec: -1, Nsec: 5e8}, {}, {Sec: 4_323_456_789, Nsec: 500_000_000}, {Sec: 1<<31 - 1, Nsec: 999_999_999},
			} {
				a := tr.at(path, false)
				must(tr, a.Utimens(when, when))
				for range 2 {
					info, err := a.Stat()
					if err != nil || info.Mtime != when || info.Atime != when {
						tr.Errorf("%s: %+v, %v; want %v", path, info, err, when)
					}
				}
			}
		}
		a := tr.at("/f", true)
		before, err := a.Stat()
		must(tr, err)
		must(tr, a.Utimens(unix.Timespec{Nsec: unix.UTIME_OMIT}, unix.Timespec{Nsec: unix.UTIME_NOW}))
		after, err := a.Stat()
		if err != nil || after.Atime != before.Atime || after.Mtime == before.Mtime {
			tr.Errorf("%+v, then %+v", before, after)
		}
		wantErr(tr, "nothing", tr.at("/none", false).Utimens(before.Atime, before.Mtime), unix.ENOENT)
	})
}

func TestTruncate(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("f", "abcdef")
		must(tr, tr.at("/f", true).Truncate(3))
		must(tr, tr.at("/f", true).Truncate(5))
		if got := tr.content("f"); got != "abc\x00\x00" {
			tr.Errorf("%q", got)
		}
		wantErr(tr, "negative", tr.at("/f", true).Truncate(-1), unix.EINVAL)
		wantErr(tr, "directory", tr.at("/", true).Truncate(0), unix.EISDIR)
		wantErr(tr, "nothing", tr.at("/none", true).Truncate(0), unix.ENOENT)
	})
}

func TestAccess(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "")
	tr.symlink("none", "dangling")
	must(t, tr.at("/f", true).Access(unix.R_OK|unix.W_OK))
	must(t, tr.at("/dangling", false).Access(unix.F_OK))
	wantErr(t, "to execute", tr.at("/f", true).Access(unix.X_OK), unix.EACCES)
	wantErr(t, "nothing", tr.at("/none", true).Access(unix.F_OK), unix.ENOENT)
}

func TestStatfs(t *testing.T) {
	tr := newTree(t, Options{})
	tr.symlink("/", "l")
	var want unix.Statfs_t
	must(t, unix.Statfs(tr.dir, &want))
	for _, path := range []string{"/", "/l"} {
		if st, err := tr.at(path, false).Statfs(); err != nil || st.Type != want.Type || st.Blocks != want.Blocks {
			t.Errorf("%+v, %v", st, err)
		}
	}
	_, err := tr.at("/none", false).Statfs()
	wantErr(t, "nothing", err, unix.ENOENT)
}

// The cache of what a walk saw must not answer after a change.
func TestStatIsFresh(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "abc")
	a := tr.at("/f", true)
	must(t, a.Truncate(1))
	if info, err := a.Stat(); err != nil || info.Size != 1 {
		t.Errorf("after truncate: %+v, %v", info, err)
	}
	must(t, os.WriteFile(tr.real("f"), []byte("12345"), 0o644))
	if info, err := a.Stat(); err != nil || info.Size != 5 {
		t.Errorf("after a change by others: %+v, %v", info, err)
	}
	to := tr.at("/g", true)
	must(t, a.Rename(to))
	if info, err := to.Stat(); err != nil || info.Size != 5 {
		t.Errorf("after rename: %+v, %v", info, err)
	}
	_, err := a.Stat()
	wantErr(t, "what was renamed", err, unix.ENOENT)
}

// xattrs is what an At and a File have in common.
type xattrs interface {
	Getxattr(name string) ([]byte, error)
	Setxattr(name string, value []byte, flags int) error
	Removexattr(name string) error
	Listxattr() ([]string, error)
}

func TestXattr(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.write("d/f", "")
		if err := unix.Setxattr(tr.real("d/f"), "user.probe", nil, 0); err == unix.EOPNOTSUPP {
			tr.Skip("no extended attributes on this file system")
		}
		tr.write("d/g", "")
		f, _, err := tr.at("/d/g", true).OpenFile(unix.O_RDWR, 0)
		must(tr, err)
		defer f.Close()
		must(tr, tr.at("/d/f", true).Removexattr("user.probe"))
		tr.Run("object", func(t *testing.T) { xattrSuite(t, tr.at("/d/f", true)) })
		tr.Run("directory", func(t *testing.T) { xattrSuite(t, tr.at("/d", true)) })
		tr.Run("root", func(t *testing.T) { xattrSuite(t, tr.at("/", true)) })
		tr.Run("open file", func(t *testing.T) { xattrSuite(t, f) })
		_, err = tr.at("/none", true).Listxattr()
		wantErr(tr, "nothing", err, unix.ENOENT)
		tr.proc = false
		_, err = tr.at("/d/f", true).Getxattr("user.a")
		wantErr(tr, "without /proc", err, ErrNoProc)
	})
}

func xattrSuite(t *testing.T, x xattrs) {
	large := bytes.Repeat([]byte("x"), 2000)
	for name, value := range map[string][]byte{"user.a": []byte("1\x002"), "user.empty": {}, "user.large": large} {
		must(t, x.Setxattr(name, value, 0))
		if got, err := x.Getxattr(name); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	names, err := x.Listxattr()
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"user.a", "user.empty", "user.large"}) {
		t.Errorf("list: %q, %v", names, err)
	}
	wantErr(t, "create only", x.Setxattr("user.a", nil, unix.XATTR_CREATE), unix.EEXIST)
	wantErr(t, "replace only", x.Setxattr("user.b", nil, unix.XATTR_REPLACE), unix.ENODATA)
	for _, name := range names {
		must(t, x.Removexattr(name))
	}
	_, err = x.Getxattr("user.a")
	wantErr(t, "removed", err, unix.ENODATA)
	wantErr(t, "removed", x.Removexattr("user.a"), unix.ENODATA)
	for _, name := range []string{"security.capability", "trusted.x", "system.posix_acl_access", "", "user"} {
		_, err := x.Getxattr(name)
		wantErr(t, "get "+name, err, unix.EOPNOTSUPP)
		wantErr(t, "set "+name, x.Setxattr(name, []byte("x"), 0), unix.EOPNOTSUPP)
		wantErr(t, "remove "+name, x.Removexattr(name), unix.EOPNOTSUPP)
	}
}

func TestXattrHidesOthers(t *testing.T) {
	needRoot(t, "set trusted attributes")
	tr := newTree(t, Options{})
	tr.write("f", "")
	if err := unix.Setxattr(tr.real("f"), "trusted.x", nil, 0); err != nil {
		t.Skipf("no trusted attributes here: %v", err)
	}
	if names, err := tr.at("/f", true).Listxattr(); err != nil || len(names) != 0 {
		t.Errorf("%q, %v", names, err)
	}
}

// An attribute of a link is not one of what it points to.
func TestXattrDoesNotFollow(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "")
	tr.symlink("f", "l")
	if err := unix.Setxattr(tr.real("f"), "user.a", []byte("f"), 0); err != nil {
		t.Skipf("no extended attributes here: %v", err)
	}
	if _, err := tr.at("/l", false).Getxattr("user.a"); err == nil {
		t.Error("the link has its target's attribute")
	}
	if err := tr.at("/l", false).Setxattr("user.a", []byte("l"), 0); err == nil {
		t.Error("an attribute was set on a link")
	}
	if got, err := tr.at("/l", true).Getxattr("user.a"); string(got) != "f" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
