package installer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// content is what the servers of these tests serve.
var content = func() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}()

func sumOf(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

// script is a server that answers each request as the next of its steps says, the
// last for all that follow, and records the requests.
type script struct {
	*httptest.Server
	mu    sync.Mutex
	got   []*http.Request
	steps []http.HandlerFunc
	met   chan struct{} // closed at the first request
}

func newScript(t *testing.T, steps ...http.HandlerFunc) *script {
	s := &script{steps: steps, met: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.got = append(s.got, r); len(s.got) == 1 {
		close(s.met)
	}
	step := s.steps[min(len(s.got), len(s.steps))-1]
	s.mu.Unlock()
	step(w, r)
}

// ranges is the Range header of each request.
func (s *script) ranges() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.got {
		out = append(out, r.Header.Get("Range"))
	}
	return strings.Join(out, " ")
}

// whole serves text with ranges, as a file server does.
func whole(text, etag string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
	}
}

// cut is whole, but the connection breaks after n bytes of the body.
func cut(text, etag string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		whole(text, etag)(&cutWriter{w, n}, r)
	}
}

type cutWriter struct {
	http.ResponseWriter
	left int
}

func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		w.ResponseWriter.Write(p[:w.left])
		w.ResponseWriter.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.left -= len(p)
	return w.ResponseWriter.Write(p)
}

// stall sends n bytes, and then nothing until the client goes away.
func stall(text, etag string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		w.Write([]byte(text[:n]))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, "<html>a body of status %d that is no content</html>", code)
	}
}

// raw writes an answer byte by byte as given, and closes the connection.
func raw(answer string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		conn.Write([]byte(answer))
	}
}

// quick is options that do not wait.
func quick() FetchOptions {
	return FetchOptions{Attempts: 3, Delay: time.Millisecond, MaxDelay: 2 * time.Millisecond, Proxies: []string{"DIRECT"}}
}

// checkFetched compares the file that Fetch made, the only one in its directory.
func checkFetched(t *testing.T, got Fetched, err error, dest, want string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(dest)
	if err != nil || string(data) != want {
		t.Fatalf("%d bytes, want %d; %v", len(data), len(want), err)
	}
	if got.Path != dest || got.Size != int64(len(want)) || got.SHA256 != sumOf(want) {
		t.Errorf("reported %+v", got)
	}
	if left := listing(t, filepath.Dir(dest)); len(left) != 1 {
		t.Errorf("left %q", left)
	}
}

func TestFetch(t *testing.T) {
	setUmask(t, 0o027)
	s := newScript(t, whole(content, `"1"`))
	dest := filepath.Join(t.TempDir(), "file")
	for range 2 { // the second time over the first
		opts := quick()
		opts.SHA256 = strings.ToUpper(sumOf(content))
		opts.Mode = 0o755
		var last int64
		opts.Progress = func(done, total int64) {
			if done <= last && last != int64(len(content)) || total != int64(len(content)) {
				t.Errorf("progress %d of %d after %d", done, total, last)
			}
			last = done
		}
		got, err := Fetch(t.Context(), s.URL+"/a%20b?q", dest, opts)
		checkFetched(t, got, err, dest, content)
		if last != int64(len(content)) || got.Attempts != 1 || got.Proxy != "" {
			t.Errorf("progress ended at %d, %+v", last, got)
		}
	}
	if st, err := os.Stat(dest); err != nil || st.Mode() != 0o750 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if uri := s.got[0].RequestURI; uri != "/a%20b?q" {
		t.Errorf("asked for %s", uri)
	}
}

func TestFetchLocal(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/a b%", content)
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{dir + "/a b%", "file://" + dir + "/a%20b%25", "file://localhost" + dir + "/a%20b%25"} {
		dest := filepath.Join(t.TempDir(), "file")
		got, err := Fetch(t.Context(), source, dest, FetchOptions{SHA256: sumOf(content)})
		checkFetched(t, got, err, dest, content)
	}
	for source, want := range map[string]string{
		dir + "/missing": "no such file", dir: "not a regular file", dir + "/fifo": "not a regular file", "": "empty name",
		"file://host/x": "another host", "ftp://host/x": "unknown scheme", "http:///x": "no host", "ftp://u:pass@word@h/x": "fetch ftp://h/x: unknown", "http://[/x": "missing ']'",
	} {
		dest := filepath.Join(t.TempDir(), "file")
		_, err := Fetch(t.Context(), source, dest, FetchOptions{})
		var fe *FetchError
		if !errors.As(err, &fe) || fe.Retryable || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), withoutUser(source)) {
			t.Errorf("%q: %v", source, err)
		}
		if left := listing(t, filepath.Dir(dest)); len(left) != 0 {
			t.Errorf("%q left %q", source, left)
		}
	}
}

func TestFetchDestination(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir+"/source", content)
	for _, dest := range []string{"", ".", dir, dir + "/x/", dir + "/missing/x", dir + "/.."} {
		if _, err := Fetch(t.Context(), dir+"/source", dest, FetchOptions{}); err == nil || Retryable(err) {
			t.Errorf("%q: %v", dest, err)
		}
	}
	if _, err := Fetch(t.Context(), dir+"/source", dir+"/x", FetchOptions{SHA256: "abc"}); err == nil {
		t.Error("a bad checksum was accepted")
	}
	if got := listing(t, dir); len(got) != 1 {
		t.Errorf("left %q", got)
	}
	long := filepath.Join(t.TempDir(), strings.Repeat("n", 255))
	got, err := Fetch(t.Context(), dir+"/source", long, FetchOptions{})
	checkFetched(t, got, err, long, content)
}

// TestFetchCancelled: whoever gives up finds nothing left and gets his reason.
func TestFetchCancelled(t *testing.T) {
	why := errors.New("enough")
	for name, step := range map[string]http.HandlerFunc{
		"stalled": stall(content, `"1"`, 1000), "waiting": status(503), "cut": cut(content, `"1"`, 1000),
	} {
		s := newScript(t, step)
		ctx, cancel := context.WithCancelCause(t.Context())
		opts := quick()
		opts.Delay, opts.MaxDelay = time.Hour, time.Hour
		dest := filepath.Join(t.TempDir(), "file")
		go func() {
			<-s.met
			cancel(why)
		}()
		_, err := Fetch(ctx, s.URL, dest, opts)
		if !errors.Is(err, why) || Retryable(err) {
			t.Errorf("%s: %v", name, err)
		}
		if left := listing(t, filepath.Dir(dest)); len(left) != 0 {
			t.Errorf("%s: left %q", name, left)
		}
		cancel(nil)
	}
}

// TestFetchKeepsOldFile: what was there stays until the new content is complete.
func TestFetchKeepsOldFile(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "file")
	writeFile(t, dest, "old")
	s := newScript(t, cut(content, `"1"`, 1000))
	if _, err := Fetch(t.Context(), s.URL, dest, quick()); err == nil {
		t.Fatal("a cut transfer was accepted")
	}
	if data, err := os.ReadFile(dest); string(data) != "old" {
		t.Errorf("%q, %v", data, err)
	}
}
