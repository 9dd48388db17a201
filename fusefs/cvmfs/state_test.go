package cvmfs

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// readOnce opens the repository, reads all of it and closes it.
func readOnce(t *testing.T, p *published, settings ...func(*Config)) (map[string]string, uint64) {
	t.Helper()
	c := p.config(t)
	for _, set := range settings {
		set(&c)
	}
	r, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	files, err := readAll(t.Context(), r, 4)
	if err != nil {
		t.Fatal(err)
	}
	return files, r.Revision()
}

// TestWarm: the second job asks for the manifest and for nothing else.
func TestWarm(t *testing.T) {
	t.Parallel()
	files := variety()
	p := publish(t, files)
	cold, _ := readOnce(t, p)
	hits := p.web.taken()
	if n, _ := objects(hits); n == 0 || hits["/"+manifestFile] != 1 || hits["/"+whitelistFile] != 1 {
		t.Errorf("cold: %v", hits)
	}
	warm, _ := readOnce(t, p)
	if hits := p.web.taken(); len(hits) != 1 || hits["/"+manifestFile] != 1 {
		t.Errorf("warm: %v", hits)
	}
	if !maps.Equal(cold, warm) {
		t.Error("warm is not cold")
	}
}

// TestOffline: what was seen and fetched before can be used without any server, as
// long as the white-list holds.
func TestOffline(t *testing.T) {
	t.Parallel()
	p := publish(t, variety())
	want, _ := readOnce(t, p)
	p.web.Close()
	got, _ := readOnce(t, p)
	if !maps.Equal(got, want) {
		t.Error("offline there are other files")
	}

	if err := p.SignWhitelist(time.Now().Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(p.Dir, whitelistFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.cache, "repos", testName, "whitelist"), list, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.try(t); !errors.Is(err, ErrUnreachable) {
		t.Errorf("with a white-list that expired in the cache: %v", err)
	}
}

// TestCachedStateIsVerified: whoever can write the cache still cannot sign.
func TestCachedStateIsVerified(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"manifest", "whitelist"} {
		p := publish(t, small)
		readOnce(t, p)
		path := filepath.Join(p.cache, "repos", testName, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, forged(func(b []byte) []byte { return append(b, "\nZ"...) })(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p.web.taken()
		if _, rev := readOnce(t, p); rev != 1 {
			t.Errorf("%s: revision %d", file, rev)
		}
		if hits := p.web.taken(); hits["/"+whitelistFile] != 1 {
			t.Errorf("%s: what was changed in the cache was trusted: %v", file, hits)
		}
	}
}

// TestNewRevision: a new manifest is verified with a new white-list, and only what
// changed is fetched.
func TestNewRevision(t *testing.T) {
	t.Parallel()
	files := maps.Clone(small)
	p := publish(t, files)
	readOnce(t, p)
	p.web.taken()
	files["new"] = cvmfstest.File{Content: []byte("new")}
	if err := p.Publish(files); err != nil {
		t.Fatal(err)
	}
	got, rev := readOnce(t, p)
	if rev != 2 || !maps.Equal(got, hashes(files)) {
		t.Errorf("revision %d: %v", rev, got)
	}
	hits := p.web.taken()
	if n, _ := objects(hits); n != 2 || hits["/"+whitelistFile] != 1 { // the root catalog and the file
		t.Errorf("asked for %v", hits)
	}
}

// TestRevoked: a certificate that was taken off the white-list cannot sign any more.
func TestRevoked(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	readOnce(t, p)
	if err := p.Publish(small); err != nil {
		t.Fatal(err)
	}
	if err := p.SignList(time.Now().Add(time.Hour), testName); err != nil {
		t.Fatal(err)
	}
	if _, err := p.try(t); !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), "not on the white-list") {
		t.Errorf("got %v", err)
	}
}

// TestRollback: a server that offers an older revision than was seen does not take us
// back.
func TestRollback(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	old, err := os.ReadFile(filepath.Join(p.Dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	newer := map[string]cvmfstest.File{"fixed": {Content: []byte("security")}}
	if err := p.Publish(newer); err != nil {
		t.Fatal(err)
	}
	readOnce(t, p)
	p.web.setForge(func(path string, data []byte) []byte {
		if strings.HasSuffix(path, manifestFile) {
			return bytes.Clone(old)
		}
		return data
	})
	if got, rev := readOnce(t, p); rev != 2 || !maps.Equal(got, hashes(newer)) {
		t.Errorf("revision %d: %v", rev, got)
	}
	p.cache = filepath.Join(t.TempDir(), "other") // without that memory the old one is as good as any
	if _, rev := readOnce(t, p); rev != 1 {
		t.Errorf("revision %d with an empty cache", rev)
	}
}

// TestTamperedWithWarmCache: a manifest that is not to be trusted is an error also
// where an older one is known.
func TestTamperedWithWarmCache(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	readOnce(t, p)
	rewrite(t, p, manifestFile, forged(replace("\nS1", "\nS9")))
	if _, err := p.try(t); !errors.Is(err, ErrUntrusted) {
		t.Errorf("got %v", err)
	}
}
