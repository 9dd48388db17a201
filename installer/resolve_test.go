package installer

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// resolveOpts does not wait long.
func resolveOpts(key *PrivateKey) ResolveOptions {
	opts := ResolveOptions{Fetch: quick()}
	opts.Fetch.Attempts = 1
	if key != nil {
		opts.Key = key.Public()
	}
	return opts
}

// TestResolveLatest finds the right version in each kind of directory (case 50).
func TestResolveLatest(t *testing.T) {
	key := newTestKey(t)
	versions := []string{"1.9.0", "1.10.0", "2.0.0-rc1", "1.10.0-linux-mips64"}
	indexed := published(t, nil, versions...)
	signed := published(t, key, versions...)
	bare := published(t, nil, versions...)
	if err := errors.Join(os.Remove(bare+"/"+IndexFile), os.Remove(bare+"/"+SumsFile)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, from string
		key        *PrivateKey
		sum        bool
	}{
		{"index", serveDir(t, http.FileServer(http.Dir(indexed))), nil, true},
		{"index of a path", indexed, nil, true},
		{"index of a file URL", "file://" + indexed + "/", nil, true},
		{"signed", serveDir(t, http.FileServer(http.Dir(signed))) + "/", key, true},
		{"listing", serveDir(t, http.FileServer(http.Dir(bare))), nil, false},
		{"path without index", bare, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := resolveOpts(c.key)
			r, err := Resolve(t.Context(), c.from, "app", "latest", "", opts)
			if err != nil || r.Version != "1.10.0" || r.Platform != "" || (r.SHA256 != "") != c.sum || r.Signed != (c.key != nil) {
				t.Errorf("%+v, %v", r, err)
			}
			if _, err := Fetch(t.Context(), r.URL, filepath.Join(t.TempDir(), "f"), FetchOptions{SHA256: r.SHA256}); err != nil {
				t.Error(err)
			}
			if r, err := Resolve(t.Context(), c.from, "app", "1.9", "", opts); err != nil || r.Version != "1.9.0" {
				t.Errorf("1.9: %+v, %v", r, err)
			}
			if r, err := Resolve(t.Context(), c.from, "app", "", "linux-mips64", opts); err != nil || r.Platform != "linux-mips64" {
				t.Errorf("platform: %+v, %v", r, err)
			}
			opts.Prereleases = true
			if r, err := Resolve(t.Context(), c.from, "app", "", "", opts); err != nil || r.Version != "2.0.0-rc1" {
				t.Errorf("pre-release: %+v, %v", r, err)
			}
			for _, bad := range [][2]string{{"app", "3"}, {"other", "latest"}} {
				if r, err := Resolve(t.Context(), c.from, bad[0], bad[1], "", opts); !errors.Is(err, ErrNoRelease) {
					t.Errorf("%q: %+v, %v", bad, r, err)
				}
			}
		})
	}
}

// page answers every request for the listing with a text, and others with 404.
func page(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/soft/" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, text)
	}
}

// TestResolveListings reads what web servers, and hostile ones, write.
func TestResolveListings(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nginx", `<html><head><title>Index of /</title></head><body><h1>Index</h1><hr><pre><a href="../">../</a>
<a href="app-1.9.0.tar.gz">app-1.9.0.tar.gz</a>   30-Nov-2026 16:00   11
<a href="app-1.10.0%2Bb1.tar.gz">app-1.10.0..&gt;</a> 30-Nov-2026 16:00   11
</pre></body></html>`, "app-1.10.0+b1.tar.gz"},
		{"apache", `<table><tr><th><a href="?C=N;O=D">Name</a></th></tr><tr><td><a href="/soft/app-1.2.tar.zst">app</a></td></tr></table>`, "app-1.2.tar.zst"},
		{"upper case and absolute", `<A HREF='http://HOST/soft/app-1.0.tar'>x</A>`, "app-1.0.tar"},
		{"elsewhere", `<a href="http://evil.example/soft/app-9.0.tar">x</a><a href="../app-8.0.tar">x</a><a href="/app-7.tar">x</a>` +
			`<a href="sub/app-6.tar">x</a><a href="..%2Fapp-5.tar">x</a><a href="app-4.tar?x=1">x</a><a href="javascript:app-3.tar">x</a><a href="app-1.tar">`, "app-1.tar"},
		{"comments", `<!-- <a href="app-2.tar"> --><script>'<a href="app-3.tar">'</script><a href="app-1.tar">`, "app-1.tar"},
		{"control characters", "<a href=\"app-2.tar%0a\">x</a><a href=\"app-3%00.tar\">x</a><a href=app-1.tar>", "app-1.tar"},
		{"nothing", `<a href="readme.txt">x</a>`, ""},
		{"cut", `<a href="app-1.tar`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			from := serveDir(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				page(strings.ReplaceAll(c.text, "HOST", r.Host))(w, r)
			}))
			r, err := Resolve(t.Context(), from+"/soft", "app", "", "", resolveOpts(nil))
			if r.File != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestResolveIsHonest: what a server refuses or garbles is said as it is.
func TestResolveIsHonest(t *testing.T) {
	entry := func(fields string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `{"app":[{%s}]}`, fields) }
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    string
	}{
		{"403", status(403), "403 Forbidden: access is refused"},
		{"404", status(404), "404 Not Found"},
		{"500", status(500), "500 Internal"},
		{"a page for the index", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>login</html>") }, "index.json cannot be read"},
		{"a path", entry(`"version":"1","file":"../app-1.tar","sha256":"` + sumOf("x") + `"`), "not that of a file"},
		{"an address", entry(`"version":"1","file":"http://evil/app-1.tar"`), "not that of a file"},
		{"a sum", entry(`"version":"1","file":"app-1.tar","sha256":"00"`), "not that of a file"},
		{"a version", entry(`"version":"../..","file":"app-1.tar"`), "has no version"},
		{"endless", func(w http.ResponseWriter, _ *http.Request) {
			for range maxMetadata>>16 + 2 {
				fmt.Fprint(w, strings.Repeat(" ", 1<<16))
			}
		}, "larger than allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Resolve(t.Context(), serveDir(t, c.handler), "app", "", "", resolveOpts(nil))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	for _, bad := range [][4]string{{"", "app", "", ""}, {"ftp://x/", "app", "", ""}, {"http://x/?a", "app", "", ""},
		{"/tmp", "../app", "", ""}, {"/tmp", "app", "newest", ""}} {
		if r, err := Resolve(t.Context(), bad[0], bad[1], bad[2], bad[3], resolveOpts(nil)); err == nil {
			t.Errorf("%q: %+v", bad, r)
		}
	}
}

// TestResolveSigned: with a key nothing else decides, whatever the server shows.
func TestResolveSigned(t *testing.T) {
	key := newTestKey(t)
	for _, c := range []struct {
		name   string
		change func(dir string) error
		want   string // "" for good
	}{
		{"the index lies", func(d string) error {
			return os.WriteFile(d+"/"+IndexFile, []byte(`{"app":[{"version":"9","file":"evil-9.tar"}]}`), 0o644)
		}, ""},
		{"sums changed", func(d string) error { return os.WriteFile(d+"/"+SumsFile, []byte(sumOf("x")+"  app-9.tar\n"), 0o644) }, "not what was signed"},
		{"no signature", func(d string) error { return os.Remove(d + "/" + SignatureFile) }, "signature is not good"},
		{"an empty signature", func(d string) error { return os.WriteFile(d+"/"+SignatureFile, nil, 0o644) }, "signature is not good"},
		{"no sums", func(d string) error { return os.Remove(d + "/" + SumsFile) }, "404"},
		{"another's key", func(d string) error {
			text, _ := os.ReadFile(d + "/" + SumsFile)
			return os.WriteFile(d+"/"+SignatureFile, newTestKey(t).sign(text, SumsFile), 0o644)
		}, "made with key"},
		{"a signature of something else", func(d string) error {
			text := sumOf("x") + "  app-9.tar\n"
			return errors.Join(os.WriteFile(d+"/"+SumsFile, []byte(text), 0o644),
				os.WriteFile(d+"/"+SignatureFile, key.sign([]byte(text), "notes"), 0o644))
		}, "made for \"notes\""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // a mismatch is looked at again after a second
			dir := published(t, key, "1.0")
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			r, err := Resolve(t.Context(), serveDir(t, http.FileServer(http.Dir(dir))), "app", "", "", resolveOpts(key))
			switch {
			case c.want == "" && (err != nil || r.Version != "1.0" || !r.Signed):
				t.Errorf("%+v, %v", r, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%+v, %v, want %q", r, err, c.want)
			}
		})
	}
}

// TestResolveWhilePublishing: new sums with the old signature are looked at again.
func TestResolveWhilePublishing(t *testing.T) {
	t.Parallel()
	key := newTestKey(t)
	old, dir := published(t, key, "1.0"), published(t, key, "1.0", "2.0")
	first := true
	from := serveDir(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/"+SignatureFile && first {
			first = false
			http.ServeFile(w, r, old+"/"+SignatureFile)
			return
		}
		http.ServeFile(w, r, dir+r.URL.Path)
	}))
	if r, err := Resolve(t.Context(), from, "app", "", "", resolveOpts(key)); err != nil || r.Version != "2.0" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestResolveFromNginx reads the listing of a real web server.
func TestResolveFromNginx(t *testing.T) {
	needPeer(t, "nginx")
	dir := published(t, nil, "1.9.0", "1.10.0", "2.0.0-rc1")
	long := "app-0.1-" + strings.Repeat("alpha.", 10) + "1.tar" // its name is shortened in the listing
	writeFile(t, dir+"/"+long, "")
	if err := os.Remove(dir + "/" + IndexFile); err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) { // nginx serves as another user
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf, address := filepath.Join(t.TempDir(), "nginx.conf"), deadAddress(t)
	writeFile(t, conf, fmt.Sprintf(`daemon off; error_log stderr; pid %s.pid; events {}
http { access_log off; client_body_temp_path %[1]s.body; proxy_temp_path %[1]s.proxy; fastcgi_temp_path %[1]s.f; uwsgi_temp_path %[1]s.u; scgi_temp_path %[1]s.s;
server { listen %s; root %s; location / { autoindex on; } location /hidden/ { deny all; } } }`, conf, address, dir))
	startPeer(t, address, "nginx", "-c", conf)
	from := "http://" + address
	r, err := Resolve(t.Context(), from, "app", "", "", resolveOpts(nil))
	if err != nil || r.Version != "1.10.0" || r.SHA256 == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Resolve(t.Context(), from, "app", "0.1-"+strings.Repeat("alpha.", 10)+"1", "", resolveOpts(nil)); err != nil || r.File != long {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Resolve(t.Context(), from+"/hidden", "app", "", "", resolveOpts(nil)); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("error %v", err)
	}
}

// FuzzListing: whatever a page holds, what comes out are plain names.
func FuzzListing(f *testing.F) {
	f.Add([]byte(`<a href="app-1.0.tar.gz">x</a><a href="../x">`))
	f.Add([]byte("<a href=%2e%2e%2fx><A HREF='a%00b'"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := newSite("http://host/dir", ResolveOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		for _, name := range listedFiles(text, s.base) {
			if !plainName(name) || strings.Contains(name, "/") {
				t.Errorf("%q", name)
			}
		}
	})
}
