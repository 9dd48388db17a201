package chirpd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// TestCommands holds the table against the protocol: each command has a handler, which
// takes the request that wire makes of its line.
func TestCommands(t *testing.T) {
	known := wire.Commands()
	for _, name := range known {
		if commands[name] == nil {
			t.Errorf("%s has no handler", name)
		}
	}
	for name := range commands {
		if !slices.Contains(known, name) {
			t.Errorf("%s is in the table, but wire cannot read it", name)
		}
	}
	s := &session{srv: new(Server)}
	for _, line := range []string{"close 7", "fstat 7", "fstatfs 7", "fsync 7", "ftruncate 7 0", "fchmod 7 0", "fchown 7 0 0", "pread 7 1 1",
		"pwrite 7 0 0", "sread 7 1 1 1 1", "swrite 7 0 1 1 1", "read 7 1", "write 7 0", "lseek 7 0 0",
		"fgetxattr 7 a", "flistxattr 7", "fremovexattr 7 a", "fsetxattr 7 a 0 0"} {
		r, err := wire.ParseRequest([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		if code := wire.CodeFor(commands[r.Command()](s, r)); code != wire.BadFD {
			t.Errorf("%s on a descriptor that is not open gives %v", line, code)
		}
	}
}

func TestAvailable(t *testing.T) {
	for _, c := range []struct {
		strides
		size, want int64
	}{
		{strides{0, 2, 4, 6}, 10, 6},
		{strides{0, 2, 4, 6}, 9, 5},
		{strides{0, 2, 4, 6}, 8, 4},
		{strides{0, 2, 4, 6}, 0, 0},
		{strides{0, 2, 1, 6}, 3, 5},
		{strides{0, 2, 0, 6}, 3, 6},
		{strides{0, 0, 4, 6}, 10, 0},
		{strides{20, 2, 4, 6}, 10, 0},
		{strides{0, 7, 7, 5}, 10, 5},
		{strides{1, 1, math.MaxInt64, 5}, math.MaxInt64, 1},
		{strides{math.MaxInt64, 1, 1, 5}, math.MaxInt64, 0},
	} {
		if got := c.available(c.size); got != c.want {
			t.Errorf("%+v of %d bytes: %d, want %d", c.strides, c.size, got, c.want)
		}
	}
}

// TestOutputData checks headers whose length was not foreseen, between other replies.
func TestOutputData(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 99, 100, copyMax} {
		for _, got := range []int{0, 1, 9, 10, n} {
			if got > n {
				continue
			}
			o := output{}
			o.number(-8)
			err := o.data(n, func(p []byte) (int, error) {
				if len(p) != n {
					t.Fatalf("room for %d of %d", len(p), n)
				}
				return copy(p, strings.Repeat("x", got)), nil
			})
			o.number(7)
			if want := fmt.Sprintf("-8\n%d\n%s7\n", got, strings.Repeat("x", got)); err != nil || string(o.buf) != want {
				t.Errorf("%d of %d bytes: %.40q (%v)", got, n, o.buf, err)
			}
			o.release()
		}
	}
}

func TestFileTable(t *testing.T) {
	open := func() *openFile {
		root, err := confine.Open(t.TempDir(), confine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		var f *confine.File
		err = root.Do("/f", false, func(a *confine.At) (err error) {
			f, _, err = a.OpenFile(openFlags(wire.OpenWrite|wire.OpenCreate), 0o600)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return &openFile{File: f}
	}
	table := fileTable{max: 3}
	for want := range int64(3) {
		if fd := table.add(open()); fd != want {
			t.Fatalf("number %d, want %d", fd, want)
		}
	}
	if !table.full() {
		t.Error("three of three are not full")
	}
	for _, fd := range []int64{2, 0} {
		if err := table.close(fd); err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range []int64{-1, 0, 2, 3, math.MaxInt64, math.MinInt64} {
		if _, err := table.get(fd); wire.CodeFor(err) != wire.BadFD {
			t.Errorf("descriptor %d gives %v", fd, err)
		}
	}
	for _, want := range []int64{0, 2} {
		if fd := table.add(open()); fd != want {
			t.Errorf("number %d, want %d", fd, want)
		}
	}
	table.closeAll()
	if table.full() || table.lowest() != 0 {
		t.Error("an empty table has files")
	}
}

// TestACLCache checks that an ACL is read once, and not kept while it is so new that
// another change could leave the same stamp.
func TestACLCache(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, aclName), []byte("unix:x rl\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := confine.Open(dir, confine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	source := aclSource{aclFiles: &aclFiles{cache: make(map[aclStamp]acl.ACL), log: slog.New(slog.DiscardHandler)}}
	for reads := 0; len(source.cache) == 0; reads++ {
		err := root.Do("/", false, func(a *confine.At) error {
			list, fromTree, err := source.in(a)
			if !fromTree || list.For("unix:x") != acl.Read|acl.List {
				t.Fatalf("the ACL is %v, of the tree: %v", list, fromTree)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if reads == 0 && len(source.cache) > 0 {
			info, err := os.Stat(filepath.Join(dir, aclName))
			if err != nil || time.Since(info.ModTime()) < settled {
				t.Fatalf("an ACL as young as %v was kept (%v)", time.Since(info.ModTime()), err)
			}
		}
		if time.Sleep(settled / 10); reads > 1000 {
			t.Fatal("the ACL is never kept")
		}
	}
}

// TestNoSocket sends and takes large data over a connection that has no socket, where
// there is no sendfile.
func TestNoSocket(t *testing.T) {
	srv, err := New(Config{Root: t.TempDir(), Verifiers: []auth.Verifier{auth.AddressVerifier()}, DefaultACL: "address:pipe rwlda"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	here, there := net.Pipe()
	defer here.Close()
	srv.admit(there)
	data := bytes.Repeat([]byte("0123456789abcdef\n"), 20_000)
	go fmt.Fprintf(here, "address\nopen /f rwc 420\npwrite 0 %d 0\n%spread 0 %[1]d 0\ngetfile /f\n\x04\n", len(data), data)
	heard, err := io.ReadAll(here)
	_, heard, _ = bytes.Cut(heard, []byte("pipe\n0\n"))
	_, heard, _ = bytes.Cut(heard, []byte("\n")) // the stat line
	count := fmt.Sprintf("%d\n", len(data))
	want := count + count + string(data) + count + string(data)
	if string(heard) != want {
		t.Errorf("%d bytes came back, %d were due (%v)", len(heard), len(want), err)
	}
}

// TestPanic has a handler panic: its connection ends, with the stack in the log, and
// others go on.
func TestPanic(t *testing.T) {
	old := commands["setrep"]
	commands["setrep"] = func(*session, wire.Request) error { panic("a fault") }
	t.Cleanup(func() { commands["setrep"] = old })

	var log bytes.Buffer
	srv, err := New(Config{Root: t.TempDir(), Verifiers: []auth.Verifier{auth.AddressVerifier()},
		Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	client := func() (net.Conn, *bufio.Reader) {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		srv.admit(there)
		go fmt.Fprint(here, "address\nwhoami 100\n")
		in := bufio.NewReader(here)
		want := "yes\nyes\nyes\naddress\npipe\n12\naddress:pipe"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(in, got); string(got) != want {
			t.Fatalf("got %q (%v)", got, err)
		}
		return here, in
	}
	first, in := client()
	second, other := client()
	fmt.Fprint(first, "setrep /x 1\n")
	if b, err := io.ReadAll(in); len(b) > 0 || err != nil {
		t.Errorf("the connection goes on with %q (%v)", b, err)
	}
	fmt.Fprint(second, "whoami 3\n")
	if line, err := other.ReadString('\n'); line != "3\n" {
		t.Errorf("the other client got %q (%v)", line, err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, "a fault") || !strings.Contains(got, "internal_test.go") {
		t.Errorf("the log lacks the fault or its stack:\n%s", got)
	}
}
