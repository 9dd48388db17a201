package installer

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const half = 1 << 19

// rest answers a range request with text from its own idea of the start on.
func rest(text, etag, contentRange string, from int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		w.Header().Set("Content-Range", contentRange)
		w.WriteHeader(http.StatusPartialContent)
		w.Write([]byte(text[from:]))
	}
}

// dated is whole with a modification time for a validator.
func dated(text string, age time.Duration, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(&cutWriter{w, n}, r, "", time.Now().Add(-age), strings.NewReader(text))
	}
}

// TestFetchRecovers: what a server may do once and be forgiven. The content is
// always the whole of one version.
func TestFetchRecovers(t *testing.T) {
	other := strings.ToUpper(content)
	all := len(content)
	cutRange := fmt.Sprintf("bytes=%d-", half)
	for _, c := range []struct {
		name   string
		want   string
		ranges string // of the requests
		steps  []http.HandlerFunc
	}{
		{"cut at half", content, " " + cutRange, []http.HandlerFunc{cut(content, `"1"`, half), whole(content, `"1"`)}},
		{"cut twice", content, " " + cutRange + fmt.Sprintf(" bytes=%d-", half+1000),
			[]http.HandlerFunc{cut(content, `"1"`, half), cut(content, `"1"`, 1000), whole(content, `"1"`)}},
		{"cut at the start", content, " ", []http.HandlerFunc{cut(content, `"1"`, 0), whole(content, `"1"`)}},
		{"changed between parts", other, " " + cutRange,
			[]http.HandlerFunc{cut(content, `"1"`, half), whole(other, `"2"`)}},
		{"another version's part", other, " " + cutRange + " ", []http.HandlerFunc{cut(content, `"1"`, half),
			rest(other, `"2"`, fmt.Sprintf("bytes %d-%d/%d", half, all-1, all), half), whole(other, `"2"`)}},
		{"another part", content, " " + cutRange + " ", []http.HandlerFunc{cut(content, `"1"`, half),
			rest(content, `"1"`, fmt.Sprintf("bytes %d-%d/%d", half+1, all-1, all), half+1), whole(content, `"1"`)}},
		{"another length", content, " " + cutRange + " ", []http.HandlerFunc{cut(content, `"1"`, half),
			rest(content, `"1"`, fmt.Sprintf("bytes %d-%d/%d", half, all, all+1), half), whole(content, `"1"`)}},
		{"a part without a range", content, " " + cutRange + " ", []http.HandlerFunc{cut(content, `"1"`, half),
			rest(content, `"1"`, "", half), whole(content, `"1"`)}},
		{"length unknown in the part", content, " " + cutRange, []http.HandlerFunc{cut(content, `"1"`, half),
			rest(content, `"1"`, fmt.Sprintf("bytes %d-%d/*", half, all-1), half)}},
		{"a part of the part", content, " " + cutRange + fmt.Sprintf(" bytes=%d-", half+10),
			[]http.HandlerFunc{cut(content, `"1"`, half),
				rest(content[:half+10], `"1"`, fmt.Sprintf("bytes %d-%d/%d", half, half+9, all), half), whole(content, `"1"`)}},
		{"part no longer there", content, " " + cutRange + " ",
			[]http.HandlerFunc{cut(content, `"1"`, half), status(416), whole(content, `"1"`)}},
		{"ranges ignored", content, " " + cutRange, []http.HandlerFunc{cut(content, `"1"`, half),
			func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(content)) }}},
		{"no validator", content, " ", []http.HandlerFunc{cut(content, "", half), whole(content, "")}},
		{"weak validator", content, " ", []http.HandlerFunc{cut(content, `W/"1"`, half), whole(content, `W/"1"`)}},
		{"old date", content, " " + cutRange, []http.HandlerFunc{dated(content, time.Hour, half), dated(content, time.Hour, all)}},
		{"fresh date", content, " ", []http.HandlerFunc{dated(content, 0, half), dated(content, 0, all)}},
		{"chunks cut", content, " ", []http.HandlerFunc{
			raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nline \r\n"), whole(content, `"1"`)}},
		{"stalled", content, " bytes=1000-", []http.HandlerFunc{stall(content, `"1"`, 1000), whole(content, `"1"`)}},
		{"503", content, " ", []http.HandlerFunc{status(503), whole(content, `"1"`)}},
		{"429", content, " ", []http.HandlerFunc{status(429, "Retry-After", "7200"), whole(content, `"1"`)}},
		{"408 after a cut", content, " " + cutRange + " " + cutRange,
			[]http.HandlerFunc{cut(content, `"1"`, half), status(408), whole(content, `"1"`)}},
		{"no HTTP", content, " ", []http.HandlerFunc{raw("SSH-2.0-OpenSSH\r\n"), whole(content, `"1"`)}},
		{"no answer", content, " ", []http.HandlerFunc{raw(""), whole(content, `"1"`)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, c.steps...)
			dest := filepath.Join(t.TempDir(), "file")
			opts := quick()
			opts.Stall = 300 * time.Millisecond
			got, err := Fetch(t.Context(), s.URL, dest, opts)
			checkFetched(t, got, err, dest, c.want)
			if r := s.ranges(); r != c.ranges {
				t.Errorf("ranges %q, want %q", r, c.ranges)
			}
			if got.Attempts != len(c.steps) {
				t.Errorf("%d attempts, want %d", got.Attempts, len(c.steps))
			}
		})
	}
}

// TestFetchFails: what is never accepted, how it is reported, and how often the
// server is asked.
func TestFetchFails(t *testing.T) {
	for _, c := range []struct {
		name      string
		step      http.HandlerFunc
		opts      func(*FetchOptions)
		text      string
		is        error
		status    int
		retryable bool
		requests  int
	}{
		{name: "404 with a body", step: status(404), text: "404 Not Found", status: 404, requests: 1},
		{name: "403", step: status(403), text: "access is refused", status: 403, requests: 1},
		{name: "410", step: status(410), text: "no such file", status: 410, requests: 1},
		{name: "204", step: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) }, text: "204", status: 204, requests: 1},
		{name: "206 unasked", step: rest(content, `"1"`, "bytes 0-9/10", 0), text: "206", status: 206, requests: 1},
		{name: "503 for ever", step: status(503), text: "503", status: 503, retryable: true, requests: 3},
		{name: "500 for ever", step: status(500), text: "500", status: 500, retryable: true, requests: 3},
		{name: "cut for ever", step: cut(content, "", 1000), text: "unexpected EOF", retryable: true, requests: 3},
		{name: "too short", step: raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), text: "unexpected EOF", retryable: true, requests: 3},
		{name: "chunks cut for ever", step: raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nline \r\n"),
			text: "unexpected EOF", retryable: true, requests: 3},
		{name: "no length", step: raw("HTTP/1.0 200 OK\r\n\r\n" + content[:100]), text: "give a checksum", requests: 1},
		{name: "no length, cut", step: raw("HTTP/1.0 200 OK\r\n\r\n" + content[:100]), is: ErrChecksum,
			opts: func(o *FetchOptions) { o.SHA256 = sumOf(content) }, requests: 2},
		{name: "wrong content", step: whole("other", `"1"`), is: ErrChecksum, text: sumOf("other"),
			opts: func(o *FetchOptions) { o.SHA256 = sumOf(content) }, requests: 2},
		{name: "too large", step: whole(content, `"1"`), is: ErrTooLarge, text: "1000 bytes",
			opts: func(o *FetchOptions) { o.MaxSize = 1000 }, requests: 1},
		{name: "too large in chunks", step: func(w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			w.Write([]byte(content))
		}, is: ErrTooLarge, opts: func(o *FetchOptions) { o.MaxSize = 1000 }, requests: 1},
		{name: "redirects for ever", step: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
		}, text: "10 redirects", requests: 10},
		{name: "stalled for ever", step: stall(content, `"1"`, 10), opts: func(o *FetchOptions) { o.Stall = 30 * time.Millisecond },
			text: "no data for 30ms", retryable: true, requests: 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript(t, c.step)
			dest := filepath.Join(t.TempDir(), "file")
			opts := quick()
			if c.opts != nil {
				c.opts(&opts)
			}
			_, err := Fetch(t.Context(), s.URL+"/x", dest, opts)
			var fe *FetchError
			if !errors.As(err, &fe) {
				t.Fatalf("error %v", err)
			}
			if fe.Status != c.status || Retryable(err) != c.retryable || fe.URL != s.URL+"/x" {
				t.Errorf("error %+v", fe)
			}
			if c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) || !strings.Contains(err.Error(), s.URL) {
				t.Errorf("error %v", err)
			}
			if len(s.got) != c.requests {
				t.Errorf("%d requests, want %d", len(s.got), c.requests)
			}
			if left := listing(t, filepath.Dir(dest)); len(left) != 0 {
				t.Errorf("left %q", left)
			}
		})
	}
}

// TestFetchStaleCache: after a wrong checksum, caches are passed over once.
func TestFetchStaleCache(t *testing.T) {
	s := newScript(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Cache-Control") == "no-cache" {
			whole(content, `"2"`)(w, r)
			return
		}
		whole("stale", `"1"`)(w, r)
	})
	opts := quick()
	opts.SHA256 = sumOf(content)
	dest := filepath.Join(t.TempDir(), "file")
	got, err := Fetch(t.Context(), s.URL, dest, opts)
	checkFetched(t, got, err, dest, content)
}

func TestStatusTable(t *testing.T) {
	for status, want := range map[int]verdict{
		400: final, 401: final, 404: final, 408: later, 425: later, 429: later, 500: later, 502: later, 503: later, 504: later,
		403: elsewhere, 407: elsewhere, 304: final,
	} {
		if got := verdictOf(status, true); got != want {
			t.Errorf("%d through a proxy: %v", status, got)
		}
		if want == elsewhere {
			want = final
		}
		if got := verdictOf(status, false); got != want {
			t.Errorf("%d: %v", status, got)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "soon": 0, "99999999999": (1 << 20) * time.Second,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {value}}}); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	date := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	if got := retryAfter(&http.Response{Header: http.Header{"Retry-After": {date}}}); got < 50*time.Minute || got > time.Hour {
		t.Errorf("%q: %v", date, got)
	}
}
