package installer

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// release makes an archive of some software that says its version.
func release(t testing.TB, dir, file, version string) string {
	t.Helper()
	name, _, _ := strings.Cut(file, "-")
	path := filepath.Join(dir, file)
	writeFile(t, path, string(zstded(t, tarball(t,
		member{name: name + "/", kind: '5'},
		member{name: name + "/version", body: version + "\n"},
		member{name: name + "/bin/" + name, mode: 0o755, body: "#!/bin/sh\necho " + version + "\n"}))))
	return path
}

// published makes a directory of releases of "app", signed if there is a key.
func published(t testing.TB, key *PrivateKey, versions ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, v := range versions {
		release(t, dir, "app-"+v+".tar.zst", v)
	}
	publishAgain(t, dir, key)
	return dir
}

func publishAgain(t testing.TB, dir string, key *PrivateKey) Index {
	t.Helper()
	opts := RepositoryOptions{}
	if key != nil {
		opts.Key, opts.Sign = *key, true
	}
	index, err := UpdateRepository(t.Context(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func newTestKey(t testing.TB) *PrivateKey {
	t.Helper()
	k, err := NewKey(filepath.Join(t.TempDir(), "key"), "")
	if err != nil {
		t.Fatal(err)
	}
	return &k
}

func TestUpdateRepository(t *testing.T) {
	key := newTestKey(t)
	dir := t.TempDir()
	for _, v := range []string{"1.9.0", "1.10.0-linux-amd64", "1.10.0-linux-arm64", "2.0.0-rc1"} {
		release(t, dir, "app-"+v+".tar.zst", v)
	}
	release(t, dir, "noversion.tar.zst", "")
	writeFile(t, dir+"/README", "not an archive")
	other := release(t, t.TempDir(), "other-1.tar.gz", "1")
	index, err := UpdateRepository(t.Context(), dir, RepositoryOptions{Add: []string{other}, Key: *key, Sign: true})
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, r := range index["app"] {
		order = append(order, r.Version+" "+r.Platform)
	}
	if got := strings.Join(order, ","); got != "2.0.0-rc1 ,1.10.0 linux-amd64,1.10.0 linux-arm64,1.9.0 " || len(index) != 2 {
		t.Errorf("index %s, %d names", got, len(index))
	}
	needPeer(t, "sha256sum")
	run(t, dir, "sha256sum", "--check", "--strict", SumsFile)
	var written Index
	text, err := os.ReadFile(dir + "/" + IndexFile)
	if err = errors.Join(err, json.Unmarshal(text, &written)); err != nil || written["other"][0].File != "other-1.tar.gz" {
		t.Errorf("%s, %v", text, err)
	}
	for name, list := range written {
		for _, r := range list {
			if sum, size, err := hashFile(t.Context(), dir+"/"+r.File); sum != r.SHA256 || size != r.Size || err != nil {
				t.Errorf("%s: %+v is not right", name, r)
			}
		}
	}
	before := snapshot(t, dir)
	publishAgain(t, dir, key)
	if after := snapshot(t, dir); after != before {
		t.Errorf("publishing the same again changed\n%s\ninto\n%s", before, after)
	}
}

func TestRepositoryRefuses(t *testing.T) {
	key := newTestKey(t)
	for _, c := range []struct {
		name   string
		change func(dir string)
		opts   RepositoryOptions
		want   string
	}{
		{"a changed release", func(d string) { release(t, d, "app-1.0.tar.zst", "changed") }, RepositoryOptions{Key: *key, Sign: true}, "with other content"},
		{"no key", nil, RepositoryOptions{}, "signed: give the key"},
		{"a hostile archive", func(d string) {
			writeFile(t, d+"/app-2.0.tar", string(tarball(t, member{name: "../x", body: "x"})))
		}, RepositoryOptions{Key: *key, Sign: true}, "\"..\""},
		{"two of a version", func(d string) { release(t, d, "app-1.0.0.tar.gz", "x") }, RepositoryOptions{Key: *key, Sign: true}, "same version"},
		{"a bad name", nil, RepositoryOptions{Add: []string{release(t, t.TempDir(), "app.tar.zst", "x")}, Key: *key, Sign: true}, "not named"},
		{"a changed copy", nil, RepositoryOptions{Add: []string{release(t, t.TempDir(), "app-1.0.tar.zst", "y")}, Key: *key, Sign: true}, "with other content"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := published(t, key, "1.0")
			if c.change != nil {
				c.change(dir)
			}
			before := snapshot(t, dir)
			if _, err := UpdateRepository(t.Context(), dir, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v", err)
			}
			if after := snapshot(t, dir); after != before {
				t.Errorf("before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

func TestKeys(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/key"
	k, err := NewKey(file, "")
	if err != nil {
		t.Fatal(err)
	}
	never := func() (string, error) { t.Error("asked for a password"); return "", nil }
	if st, err := os.Stat(file); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st, err)
	}
	same, err := ReadKey(file, never)
	if err != nil || same.Public().String() != k.Public().String() {
		t.Errorf("read back: %v", err)
	}
	if _, err := NewKey(file, ""); !errors.Is(err, os.ErrExist) {
		t.Errorf("a key was overwritten: %v", err)
	}
	for _, from := range []string{file + ".pub", k.Public().String()} {
		p, err := ParsePublicKey(from)
		if err != nil || p.verify([]byte("m"), k.sign([]byte("m"), "n"), "n") != nil {
			t.Errorf("%s: %v", from, err)
		}
		for _, err := range []error{
			p.verify([]byte("x"), k.sign([]byte("m"), "n"), "n"),
			p.verify([]byte("m"), k.sign([]byte("m"), "old"), "n"),
			p.verify([]byte("m"), newTestKey(t).sign([]byte("m"), "n"), "n"),
			p.verify([]byte("m"), nil, "n"),
		} {
			if !errors.Is(err, ErrSignature) {
				t.Errorf("a bad signature passes: %v", err)
			}
		}
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadKey(file, never); err == nil || !strings.Contains(err.Error(), "others may read it") {
		t.Errorf("error %v", err)
	}
	if listing := strings.Join(listing(t, dir), " "); listing != "key key.pub" {
		t.Errorf("there is %s", listing)
	}
}

// TestKeyWithPassword: minisign's form makes guessing expensive, and this test.
func TestKeyWithPassword(t *testing.T) {
	if raceEnabled {
		t.Skip("takes a minute with the race detector")
	}
	file := t.TempDir() + "/key"
	k, err := NewKey(file, "secret")
	if err != nil {
		t.Fatal(err)
	}
	same, err := ReadKey(file, func() (string, error) { return "secret", nil })
	if err != nil || same.Public().String() != k.Public().String() {
		t.Errorf("read back: %v", err)
	}
	why := errors.New("no terminal")
	if _, err := ReadKey(file, func() (string, error) { return "", why }); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
}

func TestParseSums(t *testing.T) {
	a, b := sumOf("a"), sumOf("b")
	good, err := parseSums([]byte(a + "  x-1.tar\n" + strings.ToUpper(b) + " *./y-1.tar\r\n\n" + a + "  dir/z-1.tar\n"))
	if err != nil || len(good) != 2 || good["x-1.tar"] != a || good["y-1.tar"] != b {
		t.Errorf("%v, %v", good, err)
	}
	for _, bad := range []string{"junk\n", a + "\n", a + " x\n", a[1:] + "  x\n", a + "  x\n" + b + "  x\n", "<html></html>", a + "g  x\n"} {
		if got, err := parseSums([]byte(bad)); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}

func TestVerify(t *testing.T) {
	key := newTestKey(t)
	dir := published(t, key, "1.0")
	file := dir + "/app-1.0.tar.zst"
	sum, _, _ := hashFile(t.Context(), file)
	good := VerifyOptions{Key: key.Public()}
	v, err := Verify(t.Context(), file, good)
	if err != nil || !v.Signed || !v.Sums || v.Summary.Files != 2 {
		t.Errorf("%+v, %v", v, err)
	}
	lone := release(t, t.TempDir(), "app-1.0.tar.zst", "1.0")
	text, _ := os.ReadFile(lone)
	writeFile(t, lone+".minisig", string(key.sign(text, "app-1.0.tar.zst")))
	renamed := filepath.Dir(lone) + "/app-2.0.tar.zst"
	writeFile(t, renamed, string(text))
	writeFile(t, renamed+".minisig", string(key.sign(text, "app-1.0.tar.zst")))
	bare := release(t, t.TempDir(), "app-1.0.tar.zst", "1.0")
	hostile := t.TempDir() + "/h.tar"
	writeFile(t, hostile, string(tarball(t, member{name: "m", kind: '2', link: "/tmp"}, member{name: "m/x", body: "x"})))
	for _, c := range []struct {
		file string
		opts VerifyOptions
		want string // "" for good
	}{
		{file, VerifyOptions{Unsigned: true}, ""},
		{file, VerifyOptions{}, "give the public key"},
		{file, VerifyOptions{Key: newTestKey(t).Public()}, "made with key"},
		{file, VerifyOptions{Key: key.Public(), SHA256: sumOf("x")}, "checksum mismatch"},
		{lone, good, ""},
		{lone, VerifyOptions{}, "give the public key"},
		{renamed, good, "made for \"app-1.0.tar.zst\""},
		{bare, VerifyOptions{}, "nothing to compare with"},
		{bare, VerifyOptions{SHA256: sum}, ""},
		{bare, VerifyOptions{SHA256: "x"}, "64 hexadecimal"},
		{bare, good, "neither"},
		{hostile, VerifyOptions{SHA256: sumOf(string(tarball(t, member{name: "m", kind: '2', link: "/tmp"}, member{name: "m/x", body: "x"})))}, "absolute path"},
	} {
		_, err := Verify(t.Context(), c.file, c.opts)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
}

// TestCheckArchiveAgrees: what Unpack refuses CheckArchive refuses, and what it
// takes is taken.
func TestCheckArchiveAgrees(t *testing.T) {
	check := func(name string, archive []byte) {
		path := filepath.Join(t.TempDir(), "a")
		writeFile(t, path, string(archive))
		_, uerr := UnpackFile(t.Context(), path, t.TempDir(), UnpackOptions{})
		_, cerr := CheckArchive(t.Context(), path, UnpackOptions{})
		if (uerr == nil) != (cerr == nil) {
			t.Errorf("%s: Unpack says %v, CheckArchive %v", name, uerr, cerr)
		}
	}
	for _, a := range attacks() {
		for _, archive := range a.archives(newScene(t)) {
			check(a.name, tarball(t, archive...))
		}
	}
	check("modes", modesArchive(t))
	check("cut", zstded(t, tarball(t, member{name: "f", body: "x"}))[:40])
	check("no end", tarball(t, member{name: "f", body: "x"})[:1024])
}

func serveDir(t testing.TB, handler http.Handler) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}
