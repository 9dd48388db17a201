package confine

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// putSuite runs a test with nameless temporary files and with named ones.
func putSuite(t *testing.T, test func(tr *tree)) {
	t.Helper()
	for name, proc := range map[string]bool{"nameless": true, "named": false} {
		t.Run(name, func(t *testing.T) {
			tr := newTree(t, Options{})
			tr.proc = tr.proc && proc
			test(tr)
		})
	}
}

// put writes a whole file.
func (tr *tree) put(path, content string, mode uint32, opts CommitOptions) error {
	a, err := tr.Walk(path, true)
	if err != nil {
		return err
	}
	defer a.Close()
	p, err := a.CreateTemp()
	if err != nil {
		return err
	}
	defer p.Abort()
	if _, err := p.WriteString(content); err != nil {
		return err
	}
	return p.Commit(mode, opts)
}

func TestPut(t *testing.T) {
	putSuite(t, func(tr *tree) {
		tr.write("old", "old content")
		must(tr, os.Chmod(tr.real("old"), 0o751))
		tr.write("d/target", "")
		tr.symlink("d/target", "l")
		tr.symlink("d/new", "dangling")
		before, err := os.Stat(tr.real("old"))
		must(tr, err)
		for _, c := range []struct {
			path, real string
			mode       uint32
		}{
			{"/new", "new", 0o640}, {"/old", "old", 0o751}, {"/l", "d/target", 0o644}, {"/dangling", "d/new", 0o640},
		} {
			must(tr, tr.put(c.path, "content of "+c.path, 0o4640, CommitOptions{Sync: c.path == "/new"}))
			info, err := tr.at(c.real, false).Stat()
			if tr.content(c.real) != "content of "+c.path || err != nil || info.Mode != unix.S_IFREG|c.mode || info.Nlink != 1 {
				tr.Errorf("%s: %q, %+v, %v", c.path, tr.content(c.real), info, err)
			}
		}
		if after, err := os.Stat(tr.real("old")); err != nil || os.SameFile(before, after) {
			tr.Error("the old file was overwritten, not replaced")
		}
		wantErr(tr, "exclusive", tr.put("/old", "x", 0o644, CommitOptions{Exclusive: true}), unix.EEXIST)
		must(tr, tr.put("/other", "x", 0o644, CommitOptions{Exclusive: true}))
		wantErr(tr, "directory", tr.put("/d", "x", 0o644, CommitOptions{}), unix.EISDIR)
		wantErr(tr, "root", tr.put("/", "x", 0o644, CommitOptions{}), unix.EISDIR)
		if got := tr.names("/"); !slices.Equal(got, []string{"d", "dangling", "l", "new", "old", "other"}) {
			tr.Errorf("left %q", got)
		}
	})
}

// A file with several names stays one file.
func TestPutInPlace(t *testing.T) {
	putSuite(t, func(tr *tree) {
		tr.write("a", "a rather long old content")
		must(tr, os.Link(tr.real("a"), tr.real("b")))
		for _, content := range []string{"new", "", "a content longer than any that was there before"} {
			must(tr, tr.put("/a", content, 0o600, CommitOptions{Sync: true}))
			info, err := tr.at("/a", true).Stat()
			if tr.content("b") != content || err != nil || info.Nlink != 2 || info.Mode&0o777 != 0o644 {
				tr.Errorf("%q, %+v, %v", tr.content("b"), info, err)
			}
		}
		if got := tr.names("/"); len(got) != 2 {
			tr.Errorf("left %q", got)
		}
	})
}

func TestPutAborted(t *testing.T) {
	putSuite(t, func(tr *tree) {
		tr.write("f", "old")
		a := tr.at("/f", true)
		p, err := a.CreateTemp()
		must(tr, err)
		_, err = p.WriteString("half")
		must(tr, err)
		if got := tr.list("/", false); !slices.Equal(got, []string{"f"}) {
			tr.Errorf("seen meanwhile: %q", got)
		}
		must(tr, p.Abort())
		must(tr, p.Abort())
		wantErr(tr, "commit after abort", p.Commit(0o644, CommitOptions{}), os.ErrClosed)
		if got := tr.names("/"); !slices.Equal(got, []string{"f"}) || tr.content("f") != "old" {
			tr.Errorf("left %q", got)
		}
	})
}

// What is found at the target only when the file is complete.
func TestPutMeetsAChange(t *testing.T) {
	putSuite(t, func(tr *tree) {
		must(tr, os.WriteFile(tr.outside+"/f", []byte("secret"), 0o644))
		for name, c := range map[string]struct {
			place func()
			opts  CommitOptions
			want  error
		}{
			"file":            {func() { tr.write("f", "other") }, CommitOptions{}, nil},
			"file, exclusive": {func() { tr.write("f", "other") }, CommitOptions{Exclusive: true}, unix.EEXIST},
			"directory":       {func() { tr.mkdir("f") }, CommitOptions{}, unix.EISDIR},
			"link":            {func() { tr.symlink(tr.outside+"/f", "f") }, CommitOptions{}, ErrChanged},
			"fifo":            {func() { must(tr, unix.Mkfifo(tr.real("f"), 0o644)) }, CommitOptions{}, ErrPipe},
		} {
			p, err := tr.at("/f", true).CreateTemp()
			must(tr, err)
			_, err = p.WriteString("mine")
			must(tr, err)
			c.place()
			if err := p.Commit(0o644, c.opts); c.want != nil {
				wantErr(tr, name, err, c.want)
			} else if err != nil || tr.content("f") != "mine" {
				tr.Errorf("%s: %v", name, err)
			}
			if got := tr.names("/"); !slices.Equal(got, []string{"f"}) {
				tr.Errorf("%s: left %q", name, got)
			}
			must(tr, tr.at("/f", false).RemoveAll(tr.Context(), nil))
		}
		if data, err := os.ReadFile(tr.outside + "/f"); string(data) != "secret" {
			tr.Errorf("outside: %q, %v", data, err)
		}
	})
}

// asNobody runs a test with the file system rights of an ordinary user, on a thread of
// its own.
func asNobody(t *testing.T, test func()) {
	t.Helper()
	needRoot(t, "become somebody else")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, unix.Setfsgid(65534))
	must(t, unix.Setfsuid(65534))
	defer func() {
		unix.Setfsuid(0)
		unix.Setfsgid(0)
	}()
	test()
}

// Owner and permissions of what was there count: another's file, which cannot be given
// back to him, is overwritten in place, and a read-only one refused before any data came.
func TestPutAsOrdinaryUser(t *testing.T) {
	putSuite(t, func(tr *tree) {
		tr.write("theirs", "theirs")
		tr.write("readonly", "readonly")
		must(tr, os.Chmod(tr.dir, 0o777))
		must(tr, os.Chmod(tr.real("theirs"), 0o666))
		asNobody(tr.T, func() {
			must(tr, tr.put("/mine", "mine", 0o644, CommitOptions{}))
			must(tr, tr.put("/theirs", "changed", 0o600, CommitOptions{}))
			_, err := tr.at("/readonly", true).CreateTemp()
			wantErr(tr, "read-only", err, unix.EACCES)
			wantErr(tr, "access", tr.at("/readonly", true).Access(unix.W_OK), unix.EACCES)
		})
		mine, err1 := tr.at("/mine", true).Stat()
		theirs, err2 := tr.at("/theirs", true).Stat()
		if err1 != nil || err2 != nil || mine.UID != 65534 || theirs.UID != 0 || theirs.Mode&0o777 != 0o666 {
			tr.Errorf("%+v, %+v", mine, theirs)
		}
		if tr.content("theirs") != "changed" || tr.content("readonly") != "readonly" || len(tr.names("/")) != 3 {
			tr.Errorf("%q in %q", tr.content("theirs"), tr.names("/"))
		}
		// Root can give the file back to its owner, so that it is replaced.
		must(tr, tr.put("/mine", "root's", 0o600, CommitOptions{}))
		if again, err := tr.at("/mine", true).Stat(); err != nil || again.UID != 65534 || again.Ino == mine.Ino {
			tr.Errorf("%+v, %v", again, err)
		}
	})
}

// Case 10: a full disk is an error, and the old content stays, in place too.
func TestPutOnFullDisk(t *testing.T) {
	needRoot(t, "mount a small file system")
	putSuite(t, func(tr *tree) {
		tr.mkdir("m")
		if err := unix.Mount("tmpfs", tr.real("m"), "tmpfs", 0, "size=256k"); err != nil {
			tr.Skipf("no mounts here: %v", err)
		}
		tr.Cleanup(func() { must(tr, unix.Unmount(tr.real("m"), unix.MNT_DETACH)) })
		tr.write("m/one", "old")
		tr.write("m/two", "old")
		must(tr, os.Link(tr.real("m/two"), tr.real("m/three")))
		wantErr(tr, "larger than the disk", tr.put("/m/one", string(make([]byte, 300<<10)), 0o644, CommitOptions{}), unix.ENOSPC)
		wantErr(tr, "in place", tr.put("/m/two", string(make([]byte, 160<<10)), 0o644, CommitOptions{}), unix.ENOSPC)
		if tr.content("m/one") != "old" || tr.content("m/two") != "old" {
			tr.Error("the old content is gone")
		}
		var left unix.Statfs_t
		must(tr, unix.Statfs(tr.real("m"), &left))
		if used := left.Blocks - left.Bfree; used > 2 {
			tr.Errorf("%d blocks are still used by %q", used, tr.names("m"))
		}
	})
}
