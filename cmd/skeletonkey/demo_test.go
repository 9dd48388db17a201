package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// decades works the decade means out a second time, in another way than the
// example does: one awk program over sorted lines.
const decades = `sort -t, -k1,1 -k2,2 | awk -F, '$2 ~ /^[0-9]+-[0-9]+$/ {
	k = $1 " " substr($2, 1, 3) "0"
	if (k != last) { if (n) printf "%s %.9f\n", last, s / n; s = n = 0; last = k }
	s += $3; n++
} END { printf "%s %.9f\n", last, s / n }'`

var resultLine = regexp.MustCompile(`The table is (\S+), the plot (\S+)`)

// runDemo runs the demo, as uid when that is not 0, and returns what it printed
// and the plot that it names.
func runDemo(t *testing.T, uid uint32, args ...string) (table, plot string) {
	t.Helper()
	if ok, err := condition("fuse"); err != nil {
		t.Fatal(err)
	} else if !ok {
		t.Skip("/dev/fuse is not open to everybody")
	}
	tmp := t.TempDir()
	for dir := tmp; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), binary, append([]string{"demo"}, args...)...)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + tmp}
	if uid != 0 {
		if err := os.Chown(tmp, int(uid), int(uid)); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var out, told bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &told, tmp
	if err := cmd.Run(); err != nil {
		t.Fatalf("demo: %v\n%s", err, told.String())
	}
	m := resultLine.FindStringSubmatch(told.String())
	if m == nil {
		t.Fatalf("the demo does not say where its results are:\n%s", told.String())
	}
	if left, _ := filepath.Glob(tmp + "/skeletonkey-[^r]*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return out.String(), m[2]
}

func TestDemoAsEveryUser(t *testing.T) {
	users := map[string]uint32{"as myself": 0}
	if os.Getuid() == 0 {
		users["ordinary user"] = 65534
	}
	for name, uid := range users {
		t.Run(name, func(t *testing.T) {
			table, plot := runDemo(t, uid)
			if n := strings.Count(table, "\tdegC\n"); n != 20 || strings.Count(table, "degC/century") != 2 {
				t.Errorf("the table has %d decades:\n%s", n, table)
			}
			checkXML(t, plot)
		})
	}
}

func checkXML(t *testing.T, file string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := xml.NewDecoder(f); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

func TestDemoOnRealRecords(t *testing.T) {
	data := filepath.Join(sharedDir(), "data/global-temp")
	records, err := os.Open(filepath.Join(data, "monthly.csv"))
	if err != nil {
		t.Skipf("no shared records: %v", err)
	}
	defer records.Close()
	oracle := exec.Command("sh", "-c", decades)
	oracle.Stdin, oracle.Env = records, append(os.Environ(), "LC_ALL=C")
	want, err := oracle.Output()
	if err != nil {
		t.Fatal(err)
	}
	table, _ := runDemo(t, 0, "--data", data)
	for line := range strings.Lines(string(want)) {
		words := strings.Fields(line)
		m := regexp.MustCompile(`(?m)^` + words[0] + `\t` + words[1] + `-\d+\t\d+\t(\S+)\tdegC$`).FindStringSubmatch(table)
		if m == nil {
			t.Errorf("the table lacks %s %s:\n%s", words[0], words[1], table)
			continue
		}
		got, _ := strconv.ParseFloat(m[1], 64)
		if mean, _ := strconv.ParseFloat(words[2], 64); math.Abs(got-mean) > 0.001 {
			t.Errorf("%s %s: %v, awk works out %v", words[0], words[1], got, mean)
		}
	}
	t.Log("\n" + table)
}

// TestDemoIsInterrupted stops the demo at several moments: nothing may be left.
func TestDemoIsInterrupted(t *testing.T) {
	for _, after := range []string{"[1/", "[2/", "[4/"} {
		tmp := t.TempDir()
		cmd := exec.CommandContext(t.Context(), binary, "demo")
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "TMPDIR=" + tmp}
		told, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		text := make([]byte, 0, 4096)
		for buf := make([]byte, 512); !bytes.Contains(text, []byte(after)); {
			n, err := told.Read(buf)
			text = append(text, buf[:n]...)
			if err != nil {
				t.Fatalf("the demo ended before %s: %v\n%s", after, err, text)
			}
		}
		_ = cmd.Process.Signal(syscall.SIGINT)
		rest, _ := io.ReadAll(told)
		if err := cmd.Wait(); err == nil {
			t.Errorf("interrupted at %s, the demo reports success\n%s%s", after, text, rest)
		}
		if left, _ := os.ReadDir(tmp); len(left) > 0 {
			t.Errorf("interrupted at %s, it leaves %v\n%s%s", after, left, text, rest)
		}
		for deadline := time.Now().Add(5 * time.Second); present(tmp) != ""; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("interrupted at %s: %s", after, present(tmp))
			}
		}
	}
}
