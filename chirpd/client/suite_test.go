package client_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// TestServers runs every behaviour of the client against our server and against
// Debian's chirp_server. A behaviour gets a directory of its own.
func TestServers(t *testing.T) {
	t.Parallel()
	behaviours := []struct {
		name string
		test func(t *testing.T, ctx context.Context, c *client.Client, dir string, p *chirptest.Peer)
	}{
		{"Whoami", testWhoami},
		{"ReadWrite", testReadWrite},
		{"Append", testAppend},
		{"Exclusive", testExclusive},
		{"LargeOffset", testLargeOffset},
		{"WholeFiles", testWholeFiles},
		{"Names", testNames},
		{"OddNames", testOddNames},
		{"Attributes", testAttributes},
		{"Listing", testListing},
		{"Links", testLinks},
		{"Xattr", testXattr},
		{"Rights", testRights},
		{"Tickets", testTickets},
		{"LongLine", testLongLine},
	}
	chirptest.Both(t, func(t *testing.T, p *chirptest.Peer) {
		c := dial(t, p.Addr, client.Options{})
		ok(t, c.Mkdir(within(t), "/suite", 0o755))
		for _, b := range behaviours {
			t.Run(b.name, func(t *testing.T) {
				dir := "/suite/" + b.name
				ok(t, c.Mkdir(within(t), dir, 0o755))
				b.test(t, within(t), c, dir, p)
			})
		}
	})
}

func testWhoami(t *testing.T, ctx context.Context, c *client.Client, _ string, _ *chirptest.Peer) {
	who, err := c.Whoami(ctx)
	ok(t, err)
	if want := "unix:" + chirptest.User(t); who != want {
		t.Errorf("subject is %q, want %q", who, want)
	}
}

func testReadWrite(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	f, err := c.Open(ctx, dir+"/f", create, 0o644)
	ok(t, err)
	if st := f.Stat(); !st.IsRegular() || st.Size != 0 {
		t.Errorf("new file has %+v", st)
	}
	want := bytes.Repeat([]byte("0123456789abcde\n"), 200<<10/16)
	n, err := f.Pwrite(ctx, want, 0)
	ok(t, err)
	if n != len(want) {
		t.Errorf("wrote %d bytes of %d", n, len(want))
	}
	got := make([]byte, len(want)+100)
	for off := 0; ; off += n {
		n, err = f.Pread(ctx, got[off:], int64(off))
		ok(t, err)
		if n == 0 {
			got = got[:off]
			break
		}
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read %d bytes that differ from the %d written", len(got), len(want))
	}
	ok(t, f.Ftruncate(ctx, 10))
	ok(t, f.Fsync(ctx))
	st, err := f.Fstat(ctx)
	ok(t, err)
	if st.Size != 10 || st.Ino != f.Stat().Ino {
		t.Errorf("after truncating to 10 bytes: %+v", st)
	}
	ok(t, f.Close(ctx))
	_, err = f.Pread(ctx, got[:1], 0)
	fails(t, err, syscall.EBADF)
	fails(t, f.Close(ctx), syscall.EBADF)
}

func testAppend(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	ok(t, c.Putfile(ctx, dir+"/f", 0o644, 3, strings.NewReader("abc")))
	f, err := c.Open(ctx, dir+"/f", wire.OpenWrite|wire.OpenAppend, 0)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("def"), 0)
	ok(t, err)
	ok(t, f.Close(ctx))
	var b bytes.Buffer
	_, err = c.Getfile(ctx, dir+"/f", &b)
	ok(t, err)
	if b.String() != "abcdef" {
		t.Errorf("file holds %q", b.String())
	}
}

func testExclusive(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	// Case 14: a new file that may only be read is written all the same.
	f, err := c.Open(ctx, dir+"/f", create|wire.OpenExclude, 0o444)
	ok(t, err)
	_, err = f.Pwrite(ctx, []byte("x"), 0)
	ok(t, err)
	ok(t, f.Close(ctx))
	_, err = c.Open(ctx, dir+"/f", create|wire.OpenExclude, 0o444)
	fails(t, err, syscall.EEXIST)
}

func testLargeOffset(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	f, err := c.Open(ctx, dir+"/sparse", create, 0o644)
	ok(t, err)
	for _, off := range []int64{1<<31 - 1, 1<<32 + 5} { // case 26
		_, err := f.Pwrite(ctx, []byte("xy"), off)
		ok(t, err)
		b := []byte("????")
		n, err := f.Pread(ctx, b, off-2)
		ok(t, err)
		if string(b[:n]) != "\x00\x00xy" {
			t.Errorf("around %d there is %q", off, b[:n])
		}
		st, err := f.Fstat(ctx)
		ok(t, err)
		if st.Size != off+2 {
			t.Errorf("size is %d after writing 2 bytes at %d", st.Size, off)
		}
	}
	ok(t, f.Close(ctx))
}

func testWholeFiles(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	data := bytes.Repeat([]byte("whole"), 1<<20/5)
	ok(t, c.Putfile(ctx, dir+"/f", 0o600, int64(len(data)), bytes.NewReader(data)))
	var got bytes.Buffer
	n, err := c.Getfile(ctx, dir+"/f", &got)
	ok(t, err)
	if n != int64(len(data)) || !bytes.Equal(got.Bytes(), data) {
		t.Errorf("got %d bytes that differ from the %d put", n, len(data))
	}
	buf := make([]byte, len(data))
	n, err = c.GetfileMax(ctx, dir+"/f", buf)
	ok(t, err)
	if !bytes.Equal(buf[:n], data) {
		t.Errorf("got %d bytes that differ from the %d put", n, len(data))
	}
	_, err = c.GetfileMax(ctx, dir+"/f", buf[:100])
	fails(t, err, syscall.EFBIG)
	_, err = c.Getfile(ctx, dir+"/none", &got)
	fails(t, err, syscall.ENOENT)

	sum, err := c.MD5(ctx, dir+"/f")
	ok(t, err)
	if want := md5.Sum(data); !bytes.Equal(sum, want[:]) {
		t.Errorf("md5 %x, want %x", sum, want)
	}
	sum, err = c.Hash(ctx, "sha1", dir+"/f")
	ok(t, err)
	if want := sha1.Sum(data); !bytes.Equal(sum, want[:]) {
		t.Errorf("sha1 %x, want %x", sum, want)
	}

	// Input that ends early is an error, and the client goes on.
	if err := c.Putfile(ctx, dir+"/short", 0o600, 10, strings.NewReader("abc")); err == nil {
		t.Error("a file was put from too little input")
	}
	fails(t, c.Putfile(ctx, dir+"/none/f", 0o600, 3, strings.NewReader("abc")), noDirectory(t, c, dir))
	ok(t, c.Putfile(ctx, dir+"/g", 0o600, 3, strings.NewReader("abc")))
}

// noDirectory is what the server says to a path below a directory that is not there:
// the real one finds no ACL there, and lets nobody in.
func noDirectory(t *testing.T, c *client.Client, dir string) syscall.Errno {
	_, err := c.Stat(within(t), dir+"/none/f")
	if errors.Is(err, wire.NotAuthorized) {
		return syscall.EACCES
	}
	return syscall.ENOENT
}

func testNames(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	_, err := c.Stat(ctx, dir+"/none")
	fails(t, err, syscall.ENOENT)
	if !errors.Is(err, wire.DoesntExist) || !strings.Contains(err.Error(), "stat chirp://"+c.Server()+dir+"/none: ") {
		t.Errorf("error is %v", err)
	}
	ok(t, c.Mkdir(ctx, dir+"/d", 0o755))
	fails(t, c.Mkdir(ctx, dir+"/d", 0o755), syscall.EEXIST)
	ok(t, c.Putfile(ctx, dir+"/d/f", 0o644, 1, strings.NewReader("1")))
	fails(t, c.Rmdir(ctx, dir+"/d"), syscall.ENOTEMPTY)
	ok(t, c.Rename(ctx, dir+"/d/f", dir+"/d/g"))
	fails(t, c.Unlink(ctx, dir+"/d/f"), syscall.ENOENT)
	ok(t, c.Access(ctx, dir+"/d/g", 4))
	ok(t, c.Mkdir(ctx, dir+"/d/e", 0o755))
	ok(t, c.Rmall(ctx, dir+"/d"))
	_, err = c.Stat(ctx, dir+"/d")
	fails(t, err, syscall.ENOENT)
}

func testOddNames(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	// Case 1, and more of its kind.
	names := []string{"a b", "a%20b", "100%", "\xff", "é", "~", "{}", `q"'<>\`, "tab\t", "-", "a\x01b"}
	for i, name := range names {
		ok(t, c.Putfile(ctx, dir+"/"+name, 0o644, int64(i), strings.NewReader(strings.Repeat("x", i))))
	}
	list, err := c.Getdir(ctx, dir)
	ok(t, err)
	want := append([]string{".", ".."}, names...)
	slices.Sort(want)
	slices.Sort(list)
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("names in the directory (-want +got):\n%s", diff)
	}
	for i, name := range names {
		st, err := c.Stat(ctx, dir+"/"+name)
		ok(t, err)
		if st.Size != int64(i) {
			t.Errorf("%q has %d bytes, want %d", name, st.Size, i)
		}
		ok(t, c.Rename(ctx, dir+"/"+name, dir+"/moved "+name))
		ok(t, c.Unlink(ctx, dir+"/moved "+name))
	}
	fails(t, c.Unlink(ctx, dir+"/nul\x00"), syscall.EINVAL)
	fails(t, c.Unlink(ctx, ""), syscall.EINVAL)
}

func testAttributes(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	path := dir + "/f"
	ok(t, c.Putfile(ctx, path, 0o644, 5, strings.NewReader("12345")))
	ok(t, c.Chmod(ctx, path, 0o700))
	ok(t, c.Truncate(ctx, path, 3))
	ok(t, c.Utime(ctx, path, time.Unix(1e9, 0), time.Unix(1e9+1, 0)))
	st, err := c.Stat(ctx, path)
	ok(t, err)
	if st.Mode&0o777 != 0o700 || st.Size != 3 || st.Atime != 1e9 || st.Mtime != 1e9+1 {
		t.Errorf("attributes are %+v", st)
	}
	fs, err := c.Statfs(ctx, dir)
	ok(t, err)
	if fs.Bsize <= 0 || fs.Blocks <= 0 || fs.Bavail > fs.Blocks {
		t.Errorf("statfs is %+v", fs)
	}
	f, err := c.Open(ctx, path, wire.OpenRead, 0)
	ok(t, err)
	ok(t, f.Fchmod(ctx, 0o600))
	ok(t, f.Close(ctx))
}

func testListing(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	for _, name := range []string{"one", "two", "three"} {
		ok(t, c.Putfile(ctx, dir+"/"+name, 0o644, int64(len(name)), strings.NewReader(name)))
	}
	want := map[string]int64{"one": 3, "two": 3, "three": 5}
	check := func(how string, entries []client.DirEntry) {
		got := map[string]int64{}
		for _, e := range entries {
			if e.Name != "." && e.Name != ".." {
				got[e.Name] = e.Size
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	entries, err := c.Getlongdir(ctx, dir)
	ok(t, err)
	check("Getlongdir", entries)
	entries = nil
	ok(t, c.ReadDir(ctx, dir, func(e client.DirEntry) error {
		entries = append(entries, e)
		return nil
	}))
	check("ReadDir", entries)
	enough := errors.New("enough")
	if err := c.ReadDir(ctx, dir, func(client.DirEntry) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("ReadDir returned %v", err)
	}
	_, err = c.Getlongdir(ctx, dir+"/none")
	if err == nil {
		t.Error("a directory that is not there was listed")
	}
}

func testLinks(t *testing.T, ctx context.Context, c *client.Client, dir string, _ *chirptest.Peer) {
	ok(t, c.Putfile(ctx, dir+"/f", 0o644, 1, strings.NewReader("1")))
	ok(t, c.Link(ctx, dir+"/f", dir+"/hard"))
	ok(t, c.Symlink(ctx, "f", dir+"/soft"))
	target, err := c.Readlink(ctx, dir+"/soft")
	ok(t, err)
	if target != "f" {
		t.Errorf("the link holds %q", target)
	}
	hard, err := c.Stat(ctx, dir+"/hard")
	ok(t, err)
	through, err := c.Stat(ctx, dir+"/soft")
	ok(t, err)
	if hard.Nlink != 2 || hard.Ino != through.Ino {
		t.Errorf("hard link %+v, through the symbolic link %+v", hard, through)
	}
	itself, err := c.Lstat(ctx, dir+"/soft")
	ok(t, err)
	if !itself.IsSymlink() {
		t.Errorf("the symbolic link itself has mode %o", itself.Mode)
	}
	_, err = c.Readlink(ctx, dir+"/f")
	fails(t, err, syscall.EINVAL)
}
