package generator

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"skeletonkey/generator/job"
)

// web is the web server of all tests. The first component of a path says how it behaves.
var web *fakeWeb

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most of them wait most of the time
		panic(err)
	}
	web = &fakeWeb{gets: map[string]int{}, hanging: map[string]int{}}
	web.Server = httptest.NewServer(web)
	code := m.Run()
	web.CloseClientConnections()
	web.Close()
	os.Exit(code)
}

// fakeWeb serves the stand-in, well or badly:
//
//	/good/NAME/..., /missing/... (404 with a body), /wrong/... (other bytes of the same length),
//	/cut/... (half of it), /slow/..., /large/... (of largeStandIn), /cutonce/NAME/... (half of it the first time), /hang/NAME/... (half of it,
//	then nothing until the client goes away)
//
// As a proxy it answers requests for http://behind.example/... and counts them under "proxy".
type fakeWeb struct {
	*httptest.Server
	mu      sync.Mutex     // guards what follows
	gets    map[string]int // requests by path
	hanging map[string]int // those that sent their half and wait
}

// hang waits until the client goes away.
func (w *fakeWeb) hang(r *http.Request) {
	add := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hanging[r.URL.Path] += n
	}
	add(1)
	defer add(-1)
	<-r.Context().Done()
}

// awaitHanging waits until a runtime below location is half sent.
func (w *fakeWeb) awaitHanging(t *testing.T, location string) {
	t.Helper()
	prefix := strings.TrimPrefix(location, w.URL) + "/"
	is := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for p, n := range w.hanging {
			if n > 0 && strings.HasPrefix(p, prefix) {
				return true
			}
		}
		return false
	}
	for range 3000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nobody fetches " + location)
}

func (w *fakeWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	key := r.URL.Path
	if r.URL.Host != "" {
		key = "proxy " + r.URL.String()
	}
	w.mu.Lock()
	w.gets[key]++
	nth := w.gets[key]
	w.mu.Unlock()
	how, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Host != "" && !strings.HasPrefix(r.URL.Host, "behind.example"):
		http.Error(rw, "this proxy knows only behind.example", http.StatusBadGateway)
	case how == "missing":
		http.Error(rw, "a page that says that nothing is here", http.StatusNotFound)
	case how == "wrong":
		io.WriteString(rw, strings.ToUpper(standIn)) //nolint:errcheck // the client will notice
	case how == "cut", how == "cutonce" && nth == 1:
		half(rw)
		panic(http.ErrAbortHandler)
	case how == "hang":
		half(rw)
		w.hang(r)
	case how == "slow":
		time.Sleep(300 * time.Millisecond)
		whole(rw, standIn)
	case how == "large":
		whole(rw, largeStandIn)
	default:
		whole(rw, standIn)
	}
}

// largeStandIn is larger than a small disk.
var largeStandIn = standIn + strings.Repeat("# nothing\n", 20_000)

func whole(rw http.ResponseWriter, body string) {
	rw.Header().Set("Content-Length", strconv.Itoa(len(body)))
	io.WriteString(rw, body) //nolint:errcheck // the client will notice
}

func half(rw http.ResponseWriter) {
	rw.Header().Set("Content-Length", strconv.Itoa(len(standIn)))
	io.WriteString(rw, standIn[:len(standIn)/2]) //nolint:errcheck // the client will notice
	rw.(http.Flusher).Flush()
}

const testTicket = "# Chirp ticket.\n# server data.example.org:9094\n-----BEGIN RSA PRIVATE KEY-----\n" +
	"bm90IGEga2V5LCBvbmx5IGl0cyBsb29rcw==\n-----END RSA PRIVATE KEY-----\n"

// readyJob is a Job that lacks nothing; its runtime is the stand-in for every architecture.
func readyJob(t *testing.T) *job.Job {
	t.Helper()
	j, err := job.Load("testdata/climate.ini", job.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	j.Ticket.Digest, j.Ticket.Expires = "0123456789abcdef0123456789abcdef", time.Now().Add(time.Hour).Unix()
	j.Runtime.Location = web.URL + "/good/" + strings.ReplaceAll(t.Name(), "/", "-")
	for _, arch := range []string{"amd64", "arm64"} {
		j.Runtime.AddSum(job.Sum{Arch: arch, SHA256: sumOf(standIn), Size: int64(len(standIn))})
	}
	return j
}

func itoa(n int) string { return strconv.Itoa(n) }
