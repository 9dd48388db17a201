package cvmfs

import (
	"crypto/md5"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"skeletonkey/examples/internal/readmetest"
)

// bar is what the directory of that name in the repository test.cern.ch holds.
var bar = map[string][]byte{
	"1/.cvmfscatalog": nil, "1/foo": []byte("foo\n"),
	"2/.cvmfscatalog": nil, "2/foo": []byte("foo\n"),
	"3/.cvmfscatalog": nil, "3/1/bar": []byte("bar\n"), "3/2/bar": []byte("bar\n"), "3/3/bar": []byte("bar\n"),
	"4/.cvmfscatalog": nil, "4/foo": []byte("foo\n"),
	"author": []byte("René Meusel\n"), "hello_world": []byte("hello world\n"),
	"big": make([]byte, 20<<20),
}

func TestReadme(t *testing.T) {
	repo := readmetest.Shared(t, "data/cvmfs")
	if _, err := exec.LookPath("openssl"); err != nil {
		if os.Getenv("SKELETONKEY_REQUIRE_PEERS") == "1" {
			t.Fatal(err)
		}
		t.Skipf("needs openssl: %v", err)
	}
	p := readmetest.New(t)
	p.Give("REPO", repo)
	p.Run("Step by step")
	results := filepath.Join(p.Home, "cvmfs/data/results")
	var want strings.Builder
	for _, name := range slices.Sorted(maps.Keys(bar)) {
		fmt.Fprintf(&want, "%d\t%x\t%s\n", len(bar[name]), md5.Sum(bar[name]), name)
	}
	if got := read(t, filepath.Join(results, "inventory.tsv")); got != want.String() {
		t.Errorf("the table:\n%s\nwant\n%s", got, &want)
	}
	if all, err := os.ReadDir(results); err != nil || len(all) != 1 {
		t.Errorf("results hold %v, %v", all, err)
	}
}

// TestInventoryFails sees that the program does not leave a table of a part.
func TestInventoryFails(t *testing.T) {
	out := t.TempDir()
	table := filepath.Join(out, "inventory.tsv")
	if err := os.WriteFile(table, []byte("old\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir() // a md5sum that cannot read the second file
	script := "#!/bin/sh\n[ ! -e $0.done ] || exit 1\n>$0.done\nexec /usr/bin/md5sum\n"
	if err := os.WriteFile(filepath.Join(bin, "md5sum"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, path string }{
		{filepath.Join(out, "missing"), "/usr/bin:/bin"},
		{"tools/..", bin + ":/usr/bin:/bin"},
	} {
		cmd := exec.Command("sh", "tools/inventory.sh", c.dir, out)
		cmd.Env = []string{"PATH=" + c.path}
		if said, err := cmd.CombinedOutput(); err == nil {
			t.Errorf("%s: succeeded: %s", c.dir, said)
		}
		if all, err := os.ReadDir(out); err != nil || len(all) != 1 || read(t, table) != "old\n" {
			t.Errorf("%s: left %v, %v", c.dir, all, err)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
