package dist

import (
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func serve(t *testing.T) (dir, url string) {
	t.Helper()
	dir = t.TempDir()
	write(t, filepath.Join(dir, "bin/skeletonkey"), "own binary")
	write(t, filepath.Join(dir, "bin/skeletonkey-linux-riscv64"), "other binary")
	write(t, filepath.Join(dir, "bin/passwords"), "not a binary")
	write(t, filepath.Join(dir, "pub/app.tar.gz"), "application")
	write(t, filepath.Join(dir, "pub/.secret"), "hidden")
	write(t, filepath.Join(dir, "pub/repo/.cvmfspublished"), "manifest")
	write(t, filepath.Join(dir, "outside"), "outside")
	if err := os.Symlink("../outside", filepath.Join(dir, "pub/link")); err != nil {
		t.Fatal(err)
	}
	h, err := New(filepath.Join(dir, "bin/skeletonkey"), filepath.Join(dir, "pub"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return dir, srv.URL
}

func TestDistServesBinariesWithTheirSums(t *testing.T) {
	dir, url := serve(t)
	own := "skeletonkey-linux-" + runtime.GOARCH
	want := fmt.Sprintf("%x  %s\n%x  skeletonkey-linux-riscv64\n", sha256.Sum256([]byte("own binary")), own,
		sha256.Sum256([]byte("other binary")))
	if code, body := get(t, url+"/dist/SHA256SUMS"); code != 200 || body != want {
		t.Errorf("SHA256SUMS: %d %q, want %q", code, body, want)
	}
	write(t, filepath.Join(dir, "bin/new"), "changed")
	if err := os.Rename(filepath.Join(dir, "bin/new"), filepath.Join(dir, "bin/skeletonkey")); err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, url+"/dist/"+own); code != 200 || body != "own binary" {
		t.Errorf("own binary after it was replaced: %d %q", code, body)
	}
}

func TestDistServesNothingElse(t *testing.T) {
	_, url := serve(t)
	if code, body := get(t, url+"/app.tar.gz"); code != 200 || body != "application" {
		t.Errorf("published file: %d %q", code, body)
	}
	if code, body := get(t, url+"/repo/.cvmfspublished"); code != 200 || body != "manifest" {
		t.Errorf("a repository's manifest: %d %q", code, body)
	}
	for _, path := range []string{"/.cvmfs/../.secret", "/dist/passwords", "/dist/../outside", "/link", "/.secret", "/../outside", "/dist/..%2fbin%2fpasswords"} {
		if code, body := get(t, url+path); code == 200 || strings.Contains(body, "outside") && code == 200 {
			t.Errorf("%s: %d %q", path, code, body)
		}
	}
}
