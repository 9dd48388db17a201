package fusefs

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/chirptest"
)

// TestChangedOnServer is case 19: a file that grows, or changes without a change of
// size or time, is read as it is by the next open.
func TestChangedOnServer(t *testing.T) {
	m := near(t)
	for i := range 5 {
		name := fmt.Sprint("f", i)
		write(t, m.remote(name), strings.Repeat("a", 100_000))
		if got := read(t, m.path(name)); len(got) != 100_000 {
			t.Fatalf("%d bytes", len(got))
		}
		f, err := os.OpenFile(m.remote(name), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("more"); err != nil {
			t.Fatal(err)
		}
		f.Close()
		for range 2 {
			if got := read(t, m.path(name)); len(got) != 100_004 || !strings.HasSuffix(got, "amore") {
				t.Errorf("%d bytes after the file grew", len(got))
			}
		}
		if err := os.WriteFile(m.remote(name), bytes.Repeat([]byte("b"), 100_004), 0); err != nil {
			t.Fatal(err)
		}
		if got := read(t, m.path(name)); got != strings.Repeat("b", 100_004) {
			t.Errorf("after the content changed: %.10q", got)
		}
	}
}

// TestTwoMounts alternates between two mounts of one export: what was closed on one is
// read by the next open on the other.
func TestTwoMounts(t *testing.T) {
	p := chirptest.Server(t)
	a, b := mounted(t, p, p.Addr), mounted(t, p, p.Addr)
	for i := range 100 {
		want := strings.Repeat(fmt.Sprintf("%05d", i), 1+i%7*1000)
		write(t, a.path("f"), want)
		if got := read(t, b.path("f")); got != want {
			t.Fatalf("round %d: %d bytes %.10q, want %d %.10q", i, len(got), got, len(want), want)
		}
		a, b = b, a
	}
}

// TestReplacedByOther is case 20: a file that somebody replaces is the old or the new
// one, never a mix.
func TestReplacedByOther(t *testing.T) {
	p := chirptest.Server(t)
	a, b := mounted(t, p, p.Addr), mounted(t, p, p.Addr)
	write(t, a.path("x"), strings.Repeat("0", 200_000))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(stop)
		for i := range 50 {
			c := fmt.Sprint(i % 10)
			write(t, a.path("x.part"), strings.Repeat(c, 200_000))
			if err := os.Rename(a.path("x.part"), a.path("x")); err != nil {
				t.Error(err)
			}
		}
	})
	for running := true; running; {
		select {
		case <-stop:
			running = false
		default:
		}
		got, err := os.ReadFile(b.path("x"))
		if err != nil {
			t.Error(err)
			break
		}
		if len(got) != 200_000 || strings.Count(string(got), string(got[:1])) != len(got) {
			t.Errorf("%d bytes, of %q and others", len(got), got[:1])
			break
		}
	}
	wg.Wait()
}

// TestAppends appends to one file through several handles, on one mount and on two:
// every line is there once, and the order of what was written after what is kept.
func TestAppends(t *testing.T) {
	p := chirptest.Server(t)
	a, b := mounted(t, p, p.Addr), mounted(t, p, p.Addr)
	var files []*os.File
	for _, path := range []string{a.path("log"), a.path("log"), b.path("log")} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	var want strings.Builder
	for i := range 300 {
		f := files[i%2]
		line := fmt.Sprintf("line %d\n", i)
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		want.WriteString(line)
		if i%100 == 99 {
			if st, err := f.Stat(); err != nil || st.Size() != int64(want.Len()) {
				t.Errorf("size %d, %v; want %d", st.Size(), err, want.Len())
			}
		}
	}
	for range 50 {
		if _, err := files[2].WriteString("other\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	got := read(t, a.path("log"))
	if n := strings.Count(got, "other\n"); n != 50 {
		t.Errorf("%d lines of the other mount, want 50", n)
	}
	if got := strings.ReplaceAll(got, "other\n", ""); got != want.String() {
		t.Errorf("lines of this mount are wrong:\n%s", got)
	}
}

// TestOverlappingWriters writes to the same places through two descriptors in turn;
// each byte is what was written to it last.
func TestOverlappingWriters(t *testing.T) {
	m := near(t)
	var fds [2]int
	for i := range fds {
		fd, err := unix.Open(m.path("f"), unix.O_RDWR|unix.O_CREAT, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	want := make([]byte, 300_000)
	for i := range 400 {
		p := bytes.Repeat([]byte{byte(i)}, 1+i*37%5000)
		off := i * 7919 % (len(want) - len(p))
		if _, err := unix.Pwrite(fds[i%2], p, int64(off)); err != nil {
			t.Fatal(err)
		}
		copy(want[off:], p)
	}
	if err := unix.Fsync(fds[0]); err != nil { // of the file, whoever wrote
		t.Fatal(err)
	}
	got, err := os.ReadFile(m.remote("f"))
	if err != nil || !bytes.HasPrefix(want, got) || len(bytes.TrimRight(want, "\x00")) > len(got) {
		t.Errorf("after fsync the server has %d bytes that are not what was written (%v)", len(got), err)
	}
}

// TestReadBack reads through one descriptor what was just written through another, past
// the kernel's cache too.
func TestReadBack(t *testing.T) {
	m := near(t)
	w, err := unix.Open(m.path("f"), unix.O_WRONLY|unix.O_CREAT, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(w)
	r, err := unix.Open(m.path("f"), unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(r)
	buf := make([]byte, 100)
	for i := range int64(200) {
		text := fmt.Sprintf("%099d\n", i)
		if _, err := unix.Pwrite(w, []byte(text), i*100); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Pread(r, buf, i*100); err != nil || string(buf[:n]) != text {
			t.Fatalf("read %q, %v; want %q", buf[:n], err, text)
		}
		if i%10 == 0 {
			if _, err := unix.Pwrite(w, []byte("X"), i*50); err != nil {
				t.Fatal(err)
			}
			if n, err := unix.Pread(r, buf, i*50); err != nil || n == 0 || buf[0] != 'X' {
				t.Fatalf("read %q, %v; want X", buf[:1], err)
			}
		}
	}
}

// TestGrowingSmallFile follows a small file, whose content came with the open, while it
// grows, is overwritten and is cut: by this mount and by others.
func TestGrowingSmallFile(t *testing.T) {
	m := near(t, quick)
	write(t, m.path("log"), "one")
	stat(t, m.path("log")) // so that its size is believed
	f, err := os.Open(m.path("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content := func(want string) {
		t.Helper()
		buf := make([]byte, 100)
		if n, _ := f.ReadAt(buf, 0); string(buf[:n]) != want {
			t.Errorf("read %q, want %q", buf[:n], want)
		}
	}
	content("one")
	append := func(path, text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	append(m.path("log"), " two")
	content("one two")
	append(m.remote("log"), " three")
	expire()
	if st, err := f.Stat(); err != nil || st.Size() != 13 {
		t.Errorf("size %d, %v", st.Size(), err)
	}
	content("one two three")
	if err := os.Truncate(m.path("log"), 3); err != nil {
		t.Fatal(err)
	}
	content("one")
}

// TestMapped is case 24: what is written to shared memory reaches the server, with
// msync and without.
func TestMapped(t *testing.T) {
	m := near(t)
	for _, how := range []string{"synced", "open", "closed"} {
		write(t, m.path(how), strings.Repeat("-", 100_000))
		help(t, "mapped", m.path(how), how, "mapped")
		got, err := os.ReadFile(m.remote(how))
		if how != "synced" { // then it may still be on its way
			waitFor(t, how, func() bool {
				got, err = os.ReadFile(m.remote(how))
				return err == nil && strings.Contains(string(got), "mapped")
			})
		}
		want := strings.Repeat("-", 50_000) + "mapped" + strings.Repeat("-", 49_994)
		if err != nil || string(got) != want {
			t.Errorf("%s: the server has other content (%v)", how, err)
		}
		if got := read(t, m.path(how)); got != want {
			t.Errorf("%s: the mount has other content", how)
		}
	}
}

// TestLocks is case 23 on one mount: the kernel keeps locks for all processes.
func TestLocks(t *testing.T) {
	m := near(t)
	write(t, m.path("n"), "0")
	write(t, m.path("l"), "")
	var wg sync.WaitGroup
	for range 8 {
		cmd := helper(t, "count", m.path("n"))
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	wg.Wait()
	if got := read(t, m.path("n")); got != "160" {
		t.Errorf("8 processes that count to 20 came to %s", got)
	}
	help(t, "flock", m.path("l"))
}

// TestSqlite is case 23: two writers of one database.
func TestSqlite(t *testing.T) {
	need(t, "sqlite3")
	m := near(t)
	out := m.shell(t, `
		db="$1/db"
		sqlite3 "$db" "create table t (x)"
		add() { for i in $(seq 10); do sqlite3 -cmd ".timeout 20000" "$db" "insert into t values ($i)"; done; }
		add & first=$!
		add & second=$!
		wait $first && wait $second
		sqlite3 "$db" "select count(*) from t" "pragma integrity_check"`)
	if out != "20\nok" {
		t.Errorf("sqlite: %q", out)
	}
}

// TestMappedAndAppended checks that memory which is written while somebody has the file
// open for appending goes where it belongs: the kernel writes it through any descriptor.
func TestMappedAndAppended(t *testing.T) {
	m := near(t)
	write(t, m.path("f"), strings.Repeat("-", 100_000))
	f, err := os.OpenFile(m.path("f"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("end"); err != nil {
		t.Fatal(err)
	}
	h := m.fs.root.childNode("f").writing(nil)[0]
	// What the kernel does when it takes this descriptor for a page of memory.
	ctx := &fuse.Context{Caller: fuse.Caller{Pid: pagesPID}}
	if n, errno := h.Write(ctx, []byte("page"), 4096); n != 4 || errno != 0 {
		t.Errorf("write of a page: %d, %v", n, errno)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("-", 4096) + "page" + strings.Repeat("-", 100_000-4100) + "end"
	waitFor(t, "the page is there", func() bool { return read(t, m.remote("f")) == want })
}
