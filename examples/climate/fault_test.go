package climate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// old is what an earlier job left, which a failing one must not touch.
var old = map[string]string{Table: "the old table\n", Plot: "the old plot\n"}

// fill puts the results of an earlier job into a directory and returns it.
func fill(t *testing.T, dir string) string {
	t.Helper()
	for name, content := range old {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// refused runs the application, which must end with the exit code, say want, and leave out alone.
func (n node) refused(t *testing.T, code int, want, out string, inputs ...string) {
	t.Helper()
	before := contents(t, out)
	got, said := n.run(t, "app/climate.sh", append(inputs, out)...)
	if got != code || !strings.Contains(said, want) {
		t.Errorf("exit code %d, want %d; said\n%s\nwant %q", got, code, said, want)
	}
	if after := contents(t, out); !maps.Equal(after, before) {
		t.Errorf("the output directory holds %q, before %q", after, before)
	}
}

func TestWrongRecords(t *testing.T) {
	const good = "Source,Year,Mean\nA,1900-01,0.1\n"
	for _, c := range []struct{ name, in, want string }{
		{"torn at the end", good + "A,1900-02,0.", ":3: the last line has no line feed, so it may be torn"},
		{"torn in the end of a line", good + "A,1900-02,0.2\r", ":3: the last line has no line feed"},
		{"torn in the middle", good + "A,190\nA,1900-03,1\n", ":3: a record has three fields, Source,Year,Mean; here are 2"},
		{"too many fields", good + "A,1900-02,1,2\n", ":3: a record has three fields, Source,Year,Mean; here are 4"},
		{"not a number", good + "\r\nA,1900-02,1.2.3\n", ":4: the mean is not a number: 1.2.3"},
		{"no number", good + "A,1900-02,\n", ":3: the mean is not a number: "},
		{"not a decimal number", good + "A,1900-02,0x1A\n", ":3: the mean is not a number: 0x1A"},
		{"not finite", good + "A,1900-02,nan\n", ":3: the mean is not a number: nan"},
		{"too large", good + "A,1900-02,1e999\n", ":3: the mean is no temperature"},
		{"a mark for a missing value", good + "A,1900-02,-9999\n", ":3: the mean is no temperature"},
		{"no such month", good + "A,1900-13,1\n", ":3: the year is not written YYYY-MM: 1900-13"},
		{"a day", good + "A,1900-12-01,1\n", ":3: the year is not written YYYY-MM: 1900-12-01"},
		{"quotes", good + "\"A\",1900-02,1\n", ":3: a source is named in printable ASCII"},
		{"no source", good + ",1900-02,1\n", ":3: a source is named in printable ASCII"},
		{"twice", good + "B,1900-01,1\nA,1900-01,1\n", ":4: A has 1900-01 already, at "},
		{"zero bytes for a line", good + "\x00\x00\x00\x00\n", ":3: a record has three fields"},
		{"zero bytes for the end", good + "\x00\x00\x00\x00", ":3: the last line has no line feed"},
		{"zero bytes in a number", good + "A,1900-02,0.\x00\x00\n", ":3: the mean is not a number"},
		{"no header", "A,1900-01,0.1\n", ":1: the header Source,Year,Mean is wanted"},
		{"other columns", "Source,Mean,Year\nA,0.1,1900-01\n", ":1: the header Source,Year,Mean is wanted"},
		{"empty", "", ":1: the header Source,Year,Mean is wanted"},
		{"no records", "Source,Year,Mean\n", "no records at all"},
		{"many faults", good + strings.Repeat("x\n", 30), "climate: and 20 more faults"},
	} {
		t.Run(c.name, func(t *testing.T) {
			input := write(t, "x.csv", c.in)
			if strings.HasPrefix(c.want, ":") {
				c.want = "climate: " + input + c.want
			}
			nodes(t, func(t *testing.T, n node) {
				// A good file before it and after it changes nothing.
				other := write(t, "other.csv", "Source,Year,Mean\nC,1900-01,0.1\n")
				if c.name == "no records" {
					n.refused(t, 1, c.want, fill(t, t.TempDir()), input)
				} else {
					n.refused(t, 1, c.want, fill(t, t.TempDir()), other, input)
				}
			})
		})
	}
}

func TestUnreadableInput(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	dir := func(target string) string {
		d := t.TempDir()
		link(t, good, filepath.Join(d, "a.csv"))
		if target != "" {
			link(t, target, filepath.Join(d, "b.csv"))
		}
		return d
	}
	broken, dead, empty := dir("/proc/self/mem"), dir("nowhere"), t.TempDir()
	nodes(t, func(t *testing.T, n node) {
		out := fill(t, t.TempDir())
		n.refused(t, 1, broken+"/b.csv:0: cannot be read to its end", out, broken)
		n.refused(t, 1, dead+"/b.csv:0: cannot be read to its end", out, dead)
		n.refused(t, 1, "/nothing:0: cannot be read to its end", out, good, "/nothing")
		n.refused(t, 1, empty+": holds no *.csv", out, good, empty)
		n.refused(t, 2, "usage: climate.sh INPUT... OUTPUT_DIR", out)
		if code, said := n.run(t, "app/climate.sh", good, out+"/nothing"); code != 1 || !strings.Contains(said, "not a directory") {
			t.Errorf("exit code %d, said %s", code, said)
		}
	})
}

func TestNameTaken(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	for _, name := range []string{Table, Plot} {
		nodes(t, func(t *testing.T, n node) {
			out := t.TempDir()
			if err := os.Mkdir(filepath.Join(out, name), 0o777); err != nil {
				t.Fatal(err)
			}
			n.refused(t, 1, name+": is a directory, move it away", out, good)
		})
	}
}

// A full disk, at each page: no room for the directory of the temporary files' content, for the
// plot, or for the table after it.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small tmpfs")
	}
	nodes(t, func(t *testing.T, n node) {
		records := makeRecords(t, n)
		pages := (len(read(t, "sample/"+Plot)) + 4095) / 4096
		if len(read(t, "sample/"+Table)) > 4096 {
			t.Fatal("the table is larger than this test thinks")
		}
		for _, free := range []int{0, pages / 2, pages, pages + 1} {
			out := t.TempDir()
			mount(t, out, 0, fmt.Sprintf("size=%d", 4096*(len(old)+free)))
			fill(t, out)
			if free > pages { // the least that suffices, so that the others were not refused for less
				if code, said := n.run(t, "app/climate.sh", records, out); code != 0 {
					t.Errorf("%d pages: exit code %d\n%s", free, code, said)
				}
				continue
			}
			n.refused(t, 1, "cannot be written", out, records)
		}
	})
}

func TestReadOnlyDirectory(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	nodes(t, func(t *testing.T, n node) {
		out := t.TempDir()
		if os.Geteuid() == 0 {
			mount(t, out, 0, "size=64k")
			fill(t, out)
			mount(t, out, syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
		} else {
			fill(t, out)
			if err := os.Chmod(out, 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(out, 0o777) })
		}
		n.refused(t, 1, out+": cannot be written", out, good)
	})
}

// mount mounts a tmpfs for the time of the test, or changes one.
func mount(t *testing.T, dir string, flags uintptr, options string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, options); err != nil {
		t.Fatal(err)
	}
	if flags&syscall.MS_REMOUNT != 0 {
		return
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
}

// replace puts a faulty program in the place of a tool; it finds the true one as $real.
func (n node) replace(t *testing.T, tool, script string) {
	t.Helper()
	path := filepath.Join(n.bin, tool)
	target, err := os.Readlink(path)
	if err != nil {
		t.Fatal(err)
	}
	real := filepath.Join(t.TempDir(), tool)
	link(t, target, real)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	text := "#!" + peer(t, "sh") + "\nreal='" + real + "'\n" + script + "\n"
	if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}

// A store that loses the end of what is written, and says nothing, is found out.
func TestLostWrite(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	nodes(t, func(t *testing.T, n node) {
		n.replace(t, "cat", `[ $# -gt 0 ] || exec "$real" >/dev/null; exec "$real" "$@"`)
		n.refused(t, 1, "was not kept as written", fill(t, t.TempDir()), good)
	})
}

// A pipe that ends early is found out, even where it ends with a line.
func TestLostRead(t *testing.T) {
	const records = "Source,Year,Mean\nA,1900-01,0.1\nA,1900-02,0.1\n"
	good := write(t, "good.csv", records)
	kept := len("\001file \n") + len(good) + len(records) - len("A,1900-02,0.1\n")
	head := peer(t, "head")
	nodes(t, func(t *testing.T, n node) {
		n.replace(t, "tr", fmt.Sprintf("exec '%s' -c %d", head, kept))
		n.refused(t, 1, "the input was cut off", fill(t, t.TempDir()), good)
	})
}

// A signal to all processes of the job leaves nothing behind, and both results or neither. It comes
// when the tool has done its work; the temporary name says who is to get it.
func TestSignal(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	const faulty = `"$real" "$@"; code=$?; all="$*"; main=${all##*/.climate.}; kill -TERM $PPID ${main%%.*} $$; exit $code`
	for _, c := range []struct {
		tool string
		kept bool
	}{{"mkdir", true}, {"mv", false}} {
		t.Run(c.tool, func(t *testing.T) {
			nodes(t, func(t *testing.T, n node) {
				n.replace(t, c.tool, faulty)
				out := fill(t, t.TempDir())
				if code, said := n.run(t, "app/climate.sh", good, out); code != 143 {
					t.Errorf("exit code %d, want 143\n%s", code, said)
				}
				after := contents(t, out)
				if len(after) != 2 || (after[Table] == old[Table]) != c.kept || (after[Plot] == old[Plot]) != c.kept {
					t.Errorf("left %d names, table %.20q, plot %.20q", len(after), after[Table], after[Plot])
				}
			})
		})
	}
}

// Names that others have taken in the output directory, as jobs on other nodes do, are passed over.
func TestTemporaryNameTaken(t *testing.T) {
	good := write(t, "good.csv", "Source,Year,Mean\nA,1900-01,0.1\n")
	nodes(t, func(t *testing.T, n node) {
		n.replace(t, "mkdir", `case $1 in *.[01]) "$real" "$1"; exec "$real" "$1" ;; esac; exec "$real" "$1"`)
		out := t.TempDir()
		if code, said := n.run(t, "app/climate.sh", good, out); code != 0 {
			t.Fatalf("exit code %d\n%s", code, said)
		}
		if after := contents(t, out); len(after) != 4 || after[Table] == "" || after[Plot] == "" {
			t.Errorf("left %d names, table %.20q, plot %.20q", len(after), after[Table], after[Plot])
		}
	})
}
