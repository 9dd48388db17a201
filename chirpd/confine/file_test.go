package confine

import (
	"bytes"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenFile(t *testing.T) {
	const rw, create = unix.O_RDWR, unix.O_CREAT
	suite(t, func(tr *tree) {
		for _, c := range []struct {
			name  string
			path  string
			flags int
			err   error
			mode  uint32
			size  int64
		}{
			{"read", "/f", unix.O_RDONLY, nil, 0o644, 3},
			{"read what is missing", "/none", unix.O_RDONLY, unix.ENOENT, 0, 0},
			{"create", "/new", rw | create, nil, 0o604, 0},
			{"create what is there", "/f", rw | create, nil, 0o644, 3},
			{"create only", "/f", rw | create | unix.O_EXCL, unix.EEXIST, 0, 0},
			{"create only, new", "/new2", rw | create | unix.O_EXCL, nil, 0o604, 0},
			{"truncate", "/t", rw | unix.O_TRUNC, nil, 0o644, 0},
			{"through a dangling link", "/dangling", rw | create, nil, 0o604, 0},
			{"in a missing directory", "/none/f", rw | create, unix.ENOENT, 0, 0},
			{"directory", "/d", unix.O_RDONLY, unix.EISDIR, 0, 0},
			{"directory to write", "/d", rw | create, unix.EISDIR, 0, 0},
			{"root", "/", rw, unix.EISDIR, 0, 0},
			{"flag that is not offered", "/f", unix.O_DIRECT, unix.EINVAL, 0, 0},
			{"path only", "/f", unix.O_PATH, unix.EINVAL, 0, 0},
		} {
			tr.write("f", "abc")
			tr.write("t", "abc")
			tr.mkdir("d")
			os.Symlink("d/made", tr.real("dangling"))
			a := tr.at2(c.path, c.err)
			if a == nil {
				continue
			}
			f, info, err := a.OpenFile(c.flags, 0o6604)
			if c.err != nil {
				wantErr(tr, c.name, err, c.err)
				continue
			}
			must(tr, err)
			again, err := f.Stat()
			if info.Mode != unix.S_IFREG|c.mode || info.Size != c.size || again != info || err != nil {
				tr.Errorf("%s: %o with %d bytes, then %+v, %v", c.name, info.Mode, info.Size, again, err)
			}
			must(tr, f.Close())
		}
		if _, err := os.Lstat(tr.real("d/made")); err != nil {
			tr.Error(err)
		}
	})
}

// at2 walks; where the walk fails as it should there is nothing more to do.
func (tr *tree) at2(path string, want error) *At {
	tr.Helper()
	a, err := tr.Walk(path, true)
	if err != nil {
		wantErr(tr, path, err, want)
		return nil
	}
	tr.Cleanup(a.Close)
	return a
}

// O_CREAT with a mode that forbids writing gives a descriptor that writes all the same.
func TestCreateReadOnlyMode(t *testing.T) {
	tr := newTree(t, Options{})
	f, info, err := tr.at("/f", true).OpenFile(unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o444)
	must(t, err)
	defer f.Close()
	if _, err := f.WriteAt([]byte("x"), 0); err != nil || info.Mode&0o7777 != 0o444 {
		t.Errorf("%o, %v", info.Mode, err)
	}
}

// The last name turned into a link after the walk.
func TestChangedToLink(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "inside")
	must(t, os.WriteFile(tr.outside+"/f", []byte("secret"), 0o644))
	a, b, c := tr.at("/f", true), tr.at("/f", true), tr.at("/f", true)
	must(t, os.Remove(tr.real("f")))
	tr.symlink(tr.outside+"/f", "f")
	_, _, err := a.OpenFile(unix.O_RDONLY, 0)
	wantErr(t, "open", err, ErrChanged)
	wantErr(t, "open", err, unix.EAGAIN)
	wantErr(t, "truncate", b.Truncate(0), ErrChanged)
	_, err = c.CreateTemp()
	wantErr(t, "put", err, ErrChanged)
	runs := 0
	err = tr.Do("/f", false, func(a *At) error {
		runs++
		_, _, err := a.OpenFile(unix.O_RDONLY, 0)
		return err
	})
	wantErr(t, "a link that is always there", err, ErrChanged)
	if runs != doAttempts {
		t.Errorf("tried %d times", runs)
	}
}

func TestSpecialFilesAreNotOpened(t *testing.T) {
	suite(t, func(tr *tree) {
		must(tr, unix.Mkfifo(tr.real("fifo"), 0o666))
		tr.Chdir(tr.dir) // a socket's path is short
		l, err := net.Listen("unix", "socket")
		must(tr, err)
		defer l.Close()
		specials := map[string]error{"/fifo": ErrPipe, "/socket": ErrSpecial}
		if os.Geteuid() == 0 {
			must(tr, unix.Mknod(tr.real("null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
			specials["/null"] = ErrSpecial
		}
		for path, want := range specials {
			for _, flags := range []int{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC} {
				_, _, err := tr.at(path, true).OpenFile(flags, 0o644)
				wantErr(tr, path, err, want)
			}
			wantErr(tr, path, tr.at(path, true).Truncate(0), want)
			_, err := tr.at(path, true).CreateTemp()
			wantErr(tr, path, err, want)
			// The name is like any other.
			if info, err := tr.at(path, true).Stat(); err != nil || info.IsRegular() {
				tr.Errorf("%s: %+v, %v", path, info, err)
			}
			// The same when it was put there after the walk has looked.
			a := tr.at("/other", true)
			must(tr, os.Rename(tr.real(path), tr.real("other")))
			_, _, err = a.openRegular(unix.O_RDONLY, 0)
			wantErr(tr, path, err, want)
			must(tr, tr.at("/other", true).Unlink())
		}
	})
}

func TestAppend(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("log", "one\n")
	f, _, err := tr.at("/log", true).OpenFile(unix.O_WRONLY|unix.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	tr.write("log", "one\ntwo\n")
	if _, err := f.Write([]byte("three\n")); err != nil {
		t.Fatal(err)
	}
	if got := tr.content("log"); got != "one\ntwo\nthree\n" {
		t.Errorf("%q", got)
	}
}

// Case 26: offsets beyond 2^31 and 2^32.
func TestLargeOffsets(t *testing.T) {
	tr := newTree(t, Options{})
	f, _, err := tr.at("/big", true).OpenFile(unix.O_RDWR|unix.O_CREAT, 0o644)
	must(t, err)
	defer f.Close()
	for _, off := range []int64{1<<31 - 1, 1<<32 + 5} {
		if _, err := f.WriteAt([]byte("edge"), off); err != nil {
			t.Fatal(err)
		}
	}
	hole := make([]byte, 1<<16)
	n, err := f.ReadAt(hole, 1<<32-1<<16)
	if err != nil || n != len(hole) || !bytes.Equal(hole, make([]byte, len(hole))) {
		t.Errorf("the hole: %d bytes, %v", n, err)
	}
	info, err := tr.at("/big", true).Stat()
	if err != nil || info.Size != 1<<32+9 || info.Blocks > 1<<10 {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestFileAttributes(t *testing.T) {
	tr := newTree(t, Options{})
	f, _, err := tr.at("/f", true).OpenFile(unix.O_RDWR|unix.O_CREAT, 0o644)
	must(t, err)
	must(t, f.Chmod(0o6751))
	must(t, f.Truncate(7))
	when := unix.Timespec{Sec: 1000, Nsec: 5}
	must(t, f.Utimens(when, unix.Timespec{Nsec: unix.UTIME_OMIT}))
	info, err := f.Stat()
	if err != nil || info.Mode&0o7777 != 0o751 || info.Size != 7 || info.Atime != when || info.Mtime.Sec < 1e9 {
		t.Errorf("%+v, %v", info, err)
	}
	if st, err := f.Statfs(); err != nil || st.Blocks == 0 {
		t.Errorf("%+v, %v", st, err)
	}
	must(t, f.Close())
	if _, err := f.Stat(); err == nil {
		t.Error("a closed file can be examined")
	}
	if f.Path() != "/f" {
		t.Error(f.Path())
	}
}
