package cvmfs

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// realFiles are the contents of the real repository test.cern.ch, apart from a file of
// 20 MiB of zeros in two chunks; found with zlib and the sqlite3 program.
var realFiles = map[string]string{
	"/.cvmfsdirtab":        "/bar/*\n",
	"/bar/1/.cvmfscatalog": "",
	"/bar/1/foo":           "foo\n",
	"/bar/2/.cvmfscatalog": "",
	"/bar/2/foo":           "foo\n",
	"/bar/3/.cvmfscatalog": "",
	"/bar/3/1/bar":         "bar\n",
	"/bar/3/2/bar":         "bar\n",
	"/bar/3/3/bar":         "bar\n",
	"/bar/4/.cvmfscatalog": "",
	"/bar/4/foo":           "foo\n",
	"/bar/author":          "René Meusel\n",
	"/bar/hello_world":     "hello world\n",
	"/foo/.cvmfscatalog":   "",
}

// realHashes are those of all files of the real repository.
func realHashes() map[string]string {
	all := map[string]string{"/bar/big": hashOf(make([]byte, 20<<20))}
	for path, content := range realFiles {
		all[path] = hashOf([]byte(content))
	}
	return all
}

// realConfig opens the real repository in root at a server.
func realConfig(t *testing.T, root, server string) Config {
	return Config{
		Name:     "test.cern.ch",
		CacheDir: filepath.Join(t.TempDir(), "cache"),
		Options: Options{
			URLs:    []string{server + "/cvmfs/@fqrn@"},
			PubKeys: []string{filepath.Join(root, "repo_pubkey.pem")},
			Timeout: 20 * time.Second, TimeoutDirect: 20 * time.Second,
		},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

// TestReal reads the whole of a repository that cvmfs_server made: five nested
// catalogs, chunks, empty files.
func TestReal(t *testing.T) {
	t.Parallel()
	root := shared(t, "data/cvmfs")
	w := serveDir(t, root)
	dir := mountConfig(t, realConfig(t, root, w.URL))
	if got := readTree(t, dir); !maps.Equal(got, realHashes()) {
		t.Errorf("got %v", got)
	}
	hits := w.taken()
	// The certificate, 6 catalogs, 2 chunks and 5 different files that are not empty.
	if n, most := objects(hits); n != 14 || most != 1 {
		t.Errorf("%d objects, one %d times: %v", n, most, hits)
	}
	for path := range hits {
		if strings.HasSuffix(path, "6004bcece8a26526208c54a7f48bc2837ac37b") {
			t.Error("the whole of the chunked file was fetched")
		}
	}
	st, err := os.Stat(dir + "/bar/hello_world")
	if err != nil || st.ModTime().Unix() != 1434029359 || st.Mode() != 0o644 {
		t.Errorf("hello_world: %v, %v", st, err)
	}
}

func TestRealExpired(t *testing.T) {
	root := shared(t, "data/cvmfs")
	w := serveDir(t, root)
	expired, err := os.ReadFile(filepath.Join(root, "cvmfswhitelist.expired"))
	if err != nil {
		t.Fatal(err)
	}
	w.setForge(func(path string, data []byte) []byte {
		if strings.HasSuffix(path, whitelistFile) {
			return expired
		}
		return data
	})
	_, err = Open(t.Context(), realConfig(t, root, w.URL))
	if !errors.Is(err, ErrExpired) || !strings.Contains(err.Error(), "2015-07-11") {
		t.Errorf("got %v", err)
	}
}

// TestRealWrongName: the repository of one name is not taken for another one.
func TestRealWrongName(t *testing.T) {
	root := shared(t, "data/cvmfs")
	w := serveDir(t, root)
	c := realConfig(t, root, w.URL)
	c.Name, c.Options.URLs = "best.cern.ch", []string{w.URL + "/cvmfs/test.cern.ch"}
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrUntrusted) || !strings.Contains(err.Error(), `that of "test.cern.ch"`) {
		t.Errorf("got %v", err)
	}
}
