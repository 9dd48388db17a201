package cvmfs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// newTestNetwork is a network with ways to servers.
func newTestNetwork(t *testing.T, servers []string, proxies [][]string, timeout time.Duration) *network {
	t.Helper()
	n := newNetwork(servers, proxies, Options{Timeout: timeout, TimeoutDirect: timeout}, slog.New(slog.NewTextHandler(t.Output(), nil)))
	t.Cleanup(n.close)
	return n
}

// fetchText gets a path as text.
func fetchText(n *network, path string) (string, error) {
	var text string
	err := n.get(context.Background(), path, func(r io.Reader) error {
		b, err := io.ReadAll(r)
		text = string(b)
		return err
	})
	return text, err
}

// answering is a server that answers each request with what answer does, and counts.
type answering struct {
	*httptest.Server
	count atomic.Int32
}

func newAnswering(t *testing.T, answer http.HandlerFunc) *answering {
	a := &answering{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.count.Add(1)
		answer(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

func sends(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func fails(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// hangs never answers.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// cuts promises more than it sends.
func cuts(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, "not all of it")
}

// stalls begins to send and then is silent.
func stalls(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, "the beginning")
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// drips sends too little to be of use.
func drips(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		time.Sleep(20 * time.Millisecond)
	}
}

// nobody is an address at which nobody listens.
func nobody(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

// TestServerFailover: whatever is wrong with the first server, the second one helps,
// and is asked first from then on.
func TestServerFailover(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		rests  bool // it is not asked again at once
	}{
		"refuses": {nil, true}, "500": {fails(500), true}, "hangs": {hangs, true}, "cuts": {cuts, true},
		"stalls": {stalls, true}, "drips": {drips, true}, "404": {fails(404), false}, "403": {fails(403), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := &answering{}
			server := ""
			if c.answer == nil {
				server = nobody(t)
			} else {
				first = newAnswering(t, c.answer)
				server = first.URL
			}
			good := newAnswering(t, sends("good"))
			n := newTestNetwork(t, []string{server, good.URL}, nil, 300*time.Millisecond)
			for range 3 {
				if got, err := fetchText(n, "x"); err != nil || got != "good" {
					t.Errorf("got %q, %v", got, err)
				}
			}
			want := int32(3)
			if c.rests {
				want = 1
			}
			if got := first.count.Load(); c.answer != nil && got != want {
				t.Errorf("the bad server was asked %d times, not %d", got, want)
			}
		})
	}
}

// TestProxyFailover: the same for proxies, in one group and between groups.
func TestProxyFailover(t *testing.T) {
	server := newAnswering(t, sends("from the server"))
	good := newAnswering(t, sends("through the proxy"))
	for name, bad := range map[string]string{
		"refuses": nobody(t),
		"hangs":   newAnswering(t, hangs).URL,
		"503":     newAnswering(t, fails(503)).URL,
		"407":     newAnswering(t, fails(407)).URL,
	} {
		for ways, proxies := range map[string][][]string{
			"in a group": {{bad, good.URL}}, "between groups": {{bad}, {good.URL}, {Direct}}, "direct": {{bad}, {Direct}},
		} {
			t.Run(name+" "+ways, func(t *testing.T) {
				t.Parallel()
				n := newTestNetwork(t, []string{server.URL}, proxies, 300*time.Millisecond)
				want := "through the proxy"
				if ways == "direct" {
					want = "from the server"
				}
				for _, path := range []string{"a", "b", "c", "d"} {
					if got, err := fetchText(n, path); err != nil || got != want {
						t.Errorf("got %q, %v", got, err)
					}
				}
			})
		}
	}
}

// TestLoadBalance: the proxies of a group share the requests, and each path always has
// the same one.
func TestLoadBalance(t *testing.T) {
	a, b, c := newAnswering(t, sends("a")), newAnswering(t, sends("b")), newAnswering(t, sends("c"))
	n := newTestNetwork(t, []string{"http://server.invalid"}, [][]string{{a.URL, b.URL, c.URL}}, time.Minute)
	for range 2 {
		for i := range 90 {
			o := objectFor([]byte{byte(i)})
			one, err := fetchText(n, o.path())
			two, err2 := fetchText(n, o.path())
			if err != nil || err2 != nil || one != two {
				t.Fatal(one, err, two, err2)
			}
		}
	}
	for _, p := range []*answering{a, b, c} {
		if got := p.count.Load(); got < 60 || got > 180 {
			t.Errorf("a proxy got %d of 360 requests", got)
		}
	}
}

// TestNothingHelps: the errors say what is the matter, and come in the end.
func TestNothingHelps(t *testing.T) {
	t.Parallel()
	missing := newAnswering(t, fails(404))
	n := newTestNetwork(t, []string{missing.URL, missing.URL + "/2"}, nil, time.Minute)
	if _, err := fetchText(n, "x"); !errors.Is(err, ErrMissing) || missing.count.Load() != 2 {
		t.Errorf("after %d requests: %v", missing.count.Load(), err)
	}
	down := newAnswering(t, fails(500))
	n = newTestNetwork(t, []string{down.URL}, nil, time.Minute)
	if _, err := fetchText(n, "x"); !errors.Is(err, ErrUnreachable) || down.count.Load() != rounds {
		t.Errorf("after %d requests: %v", down.count.Load(), err)
	}
	slow := newAnswering(t, hangs)
	n = newTestNetwork(t, []string{slow.URL}, nil, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if err := n.get(ctx, "x", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a request that was given up: %v", err)
	}
}

// TestRecovers: a server that comes back within the rounds is enough.
func TestRecovers(t *testing.T) {
	t.Parallel()
	var count atomic.Int32
	s := newAnswering(t, func(w http.ResponseWriter, r *http.Request) {
		if count.Add(1) < rounds {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "now")
	})
	if got, err := fetchText(newTestNetwork(t, []string{s.URL}, nil, time.Minute), "x"); err != nil || got != "now" {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestSlowButSteady: an answer that takes long is no failure as long as something
// comes.
func TestSlowButSteady(t *testing.T) {
	t.Parallel()
	s := newAnswering(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 8 {
			time.Sleep(100 * time.Millisecond)
			_, _ = w.Write(make([]byte, 1000))
			w.(http.Flusher).Flush()
		}
	})
	n := newTestNetwork(t, []string{s.URL}, nil, 600*time.Millisecond)
	if got, err := fetchText(n, "x"); err != nil || len(got) != 8000 {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

// TestCorruptProxy: a proxy has kept a damaged object. It is asked to fetch it anew.
func TestCorruptProxy(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	r := p.open(t)
	var asked atomic.Int32
	p.web.setForge(func(path string, data []byte) []byte {
		if strings.Contains(path, "/data/") && asked.Add(1) == 1 {
			return bytes.Repeat([]byte{0}, len(data))
		}
		return data
	})
	var fresh atomic.Int32
	p.web.setStatus(func(r *http.Request) int {
		if r.Header.Get("Cache-Control") == "no-cache" {
			fresh.Add(1)
		}
		return 0
	})
	e := lookupFrom(t, r, r.root, "f")
	b, err := readNode(t.Context(), &node{repo: r, spot: r.root.below(e), entry: e})
	if err != nil || !bytes.Equal(b, small["f"].Content) || fresh.Load() != 1 {
		t.Errorf("got %q, %v after %d requests past the caches", b, err, fresh.Load())
	}
}

// TestSecondServerHasIt: of two replicas the first one has damaged and missing
// objects.
func TestSecondServerHasIt(t *testing.T) {
	t.Parallel()
	files := tree200()
	p := publish(t, files)
	broken := serveDir(t, p.Dir)
	broken.setForge(func(path string, data []byte) []byte {
		switch {
		case !strings.Contains(path, "/data/"):
			return data
		case strings.Contains("01234567", path[6:7]):
			return nil
		}
		return data[:len(data)/2]
	})
	r := p.open(t, func(c *Config) { c.Options.URLs = []string{broken.URL, p.web.URL} })
	got, err := readAll(t.Context(), r, 8)
	if err != nil || len(got) != len(hashes(files)) {
		t.Errorf("%d files, %v", len(got), err)
	}
}

// TestRedirect: servers may send us on.
func TestRedirect(t *testing.T) {
	good := newAnswering(t, sends("there"))
	s := newAnswering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, good.URL, http.StatusFound) })
	if got, err := fetchText(newTestNetwork(t, []string{s.URL}, nil, time.Minute), "x"); err != nil || got != "there" {
		t.Errorf("got %q, %v", got, err)
	}
	var loop *answering
	loop = newAnswering(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, loop.URL, http.StatusFound) })
	if _, err := fetchText(newTestNetwork(t, []string{loop.URL, good.URL}, nil, time.Minute), "x"); err != nil {
		t.Errorf("a loop was not left for the next server: %v", err)
	}
}

// TestEnvironmentHasNoSay: only the proxies that were named are used.
func TestEnvironmentHasNoSay(t *testing.T) {
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	r, err := http.NewRequest(http.MethodGet, "http://cvmfs.example.org/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := http.ProxyFromEnvironment(r); p == nil || err != nil {
		t.Fatalf("the environment would not have had a say: %v, %v", p, err)
	}
	if p, err := proxyOf(r); p != nil || err != nil {
		t.Errorf("got %v, %v", p, err)
	}
}

// TestCacheDirectory: it is where the options or the configuration say.
func TestCacheDirectory(t *testing.T) {
	p := publish(t, small)
	dir := filepath.Join(t.TempDir(), "x", "y")
	p.open(t, func(c *Config) { c.Options.CacheDir = dir })
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st, err)
	}
	if _, err := os.Stat(p.cache); err == nil {
		t.Error("the other one was made too")
	}
}

// TestWaitForTurn: waiting for one's turn is no failure of the server, however long it
// takes.
func TestWaitForTurn(t *testing.T) {
	t.Parallel()
	s := newAnswering(t, sends("x"))
	const limit = time.Second
	n := newTestNetwork(t, []string{s.URL}, nil, limit)
	for range cap(n.turns) {
		n.turns <- struct{}{}
	}
	done := make(chan error, 1)
	go func() {
		_, err := fetchText(n, "x")
		done <- err
	}()
	select {
	case err := <-done:
		t.Errorf("it did not wait: %v", err)
	case <-time.After(limit + limit/4):
		<-n.turns
		if err := <-done; err != nil || s.count.Load() != 1 {
			t.Errorf("after %d requests: %v", s.count.Load(), err)
		}
	}
}
