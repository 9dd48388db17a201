package generator

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skeletonkey/generator/job"
)

// dist is a directory with a binary for amd64 and one for arm64, and their SHA256SUMS.
func dist(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"skeletonkey-linux-amd64": "one", "skeletonkey-linux-arm64": "three", "other": "x",
		"SHA256SUMS": "# made by hand\n" + sumOf("one") + "  skeletonkey-linux-amd64\n" +
			strings.ToUpper(sumOf("three")) + " *./skeletonkey-linux-arm64\r\n" + sumOf("x") + "  other\nnonsense\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFindRuntime(t *testing.T) {
	dir := dist(t)
	server := httptest.NewServer(http.StripPrefix("/dist/", http.FileServer(http.Dir(dir))))
	defer server.Close()
	want := []job.Sum{{Arch: "amd64", SHA256: sumOf("one"), Size: 3}, {Arch: "arm64", SHA256: sumOf("three"), Size: 5}}
	for _, location := range []string{server.URL + "/dist", dir, "file://" + dir} {
		r := job.Runtime{Location: location}
		ok(t, FindRuntime(within(t), &r))
		if d := cmp.Diff(want, r.Sums); d != "" {
			t.Errorf("%s (-want +got):\n%s", location, d)
		}
	}
}

func TestFindRuntimeFails(t *testing.T) {
	dir := dist(t)
	ok(t, os.Remove(filepath.Join(dir, "skeletonkey-linux-arm64"))) // SHA256SUMS still names it
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	ok(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755))
	ok(t, os.WriteFile(filepath.Join(dir, "empty/SHA256SUMS"), nil, 0o644))
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(sumOf("one") + "  skeletonkey-linux-amd64\n")) //nolint:errcheck // the client will notice
		w.(http.Flusher).Flush()                                      // so that no length is said
	}))
	defer endless.Close()
	for location, says := range map[string]string{
		server.URL:              "404",
		server.URL + "/missing": "404 Not Found; `skeletonkey serve --dist` has it at /dist",
		server.URL + "/empty":   "is it the /dist address",
		dir + "/empty":          "is it the /dist address",
		endless.URL:             "does not say how large",
		"http://127.0.0.1:9":    "refused",
	} {
		r := job.Runtime{Location: location}
		if err := FindRuntime(within(t), &r); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), location) {
			t.Errorf("%s: %v", location, err)
		}
	}
}
