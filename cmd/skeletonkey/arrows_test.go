package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// arrows says for each package of ours which others it may import, paths below
// the module's. A package that is not here, or an import that is not, fails the
// test: change the design first. "*" is every package but those of tests.
var arrows = map[string][]string{
	"chirpd/wire":            {},
	"chirpd/acl":             {},
	"chirpd/confine":         {},
	"chirpd/auth":            {"chirpd/wire"},
	"chirpd/client":          {"chirpd/wire", "chirpd/auth"},
	"chirpd":                 {"chirpd/wire", "chirpd/auth", "chirpd/acl", "chirpd/confine", "chirpd/client"},
	"chirpd/chirptest":       {"chirpd", "chirpd/wire", "chirpd/auth", "chirpd/acl", "chirpd/client"},
	"fusefs/cvmfs/cvmfstest": {"fusefs/cvmfs"},
	"fusefs/cache":           {},
	"fusefs/private":         {},
	"fusefs":                 {"chirpd/wire", "chirpd/auth", "chirpd/client", "fusefs/cache"},
	"fusefs/cvmfs":           {"fusefs/cache", "installer"},
	"generator/job":          {},
	"generator":              {"generator/job", "chirpd/client", "chirpd/auth", "chirpd/wire", "chirpd/acl"},
	"generator/run": {"generator/job", "installer", "chirpd/client", "chirpd/auth", "chirpd/wire",
		"fusefs", "fusefs/private", "fusefs/cvmfs"},
	"installer":                     {},
	"examples/climate":              {},
	"examples/cvmfs":                {},
	"examples/installed":            {},
	"examples/internal/readmetest":  {},
	"cmd/skeletonkey/internal/dist": {},
	"cmd/skeletonkey":               {"*"},
}

// testOnly are packages that only tests import.
var testOnly = []string{"chirpd/chirptest", "fusefs/cvmfs/cvmfstest", "examples/internal/readmetest"}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
}

func TestImportsGoTheAllowedWay(t *testing.T) {
	packages := goList(t)
	if len(packages) < 10 {
		t.Fatalf("only %d packages listed", len(packages))
	}
	for _, p := range packages {
		name := ours(p.ImportPath)
		allowed, known := arrows[name]
		if !known {
			t.Errorf("package %s is not in the design", name)
			continue
		}
		for _, path := range p.Imports {
			to := ours(path)
			if to == "" || slices.Contains(allowed, to) || slices.Contains(allowed, "*") && !slices.Contains(testOnly, to) {
				continue
			}
			t.Errorf("%s imports %s, which the design does not allow", name, to)
		}
	}
	if cycle := findCycle(packages); cycle != nil {
		t.Errorf("imports, those of tests included, go in a circle: %s", strings.Join(cycle, " -> "))
	}
}

func goList(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,TestImports,XTestImports", "skeletonkey/...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		switch err := d.Decode(&p); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// ours is path below the module's, or empty for somebody else's package.
func ours(path string) string {
	name, ok := strings.CutPrefix(path, "skeletonkey/")
	if !ok {
		return ""
	}
	return name
}

// findCycle follows imports, and the imports of tests inside a package, which Go
// itself refuses only when they close a circle at once.
func findCycle(packages []listed) []string {
	graph := make(map[string][]string)
	for _, p := range packages {
		graph[p.ImportPath] = append(slices.Clone(p.Imports), p.TestImports...)
	}
	var path []string
	done := make(map[string]bool)
	var visit func(string) []string
	visit = func(p string) []string {
		if i := slices.Index(path, p); i >= 0 {
			return append(slices.Clone(path[i:]), p)
		}
		if done[p] {
			return nil
		}
		done[p] = true
		path = append(path, p)
		defer func() { path = path[:len(path)-1] }()
		for _, to := range graph[p] {
			if cycle := visit(to); ours(to) != "" && cycle != nil {
				return cycle
			}
		}
		return nil
	}
	for p := range graph {
		if cycle := visit(p); cycle != nil {
			return cycle
		}
	}
	return nil
}

func TestFindCycle(t *testing.T) {
	chain := []listed{{ImportPath: "skeletonkey/a", Imports: []string{"skeletonkey/b"}}, {ImportPath: "skeletonkey/b"}}
	if c := findCycle(chain); c != nil {
		t.Errorf("a chain is called a circle: %v", c)
	}
	chain[1].TestImports = []string{"skeletonkey/a"}
	if c := findCycle(chain); len(c) != 3 {
		t.Errorf("the circle is not found: %v", c)
	}
}

func TestDrawnLayoutIsComplete(t *testing.T) {
	seen := make(map[string]bool)
	for _, p := range goList(t) {
		seen[ours(p.ImportPath)] = true
	}
	for name := range arrows {
		if !seen[name] {
			t.Errorf("the design names %s, which does not exist", name)
		}
	}
}
