package client_test

import (
	"strings"
	"testing"

	"skeletonkey/chirpd/client"
)

func TestParseURL(t *testing.T) {
	for _, c := range []struct{ in, server, path string }{
		{"host", "host:9094", "/"},
		{"host:1", "host:1", "/"},
		{"host:1/a/b", "host:1", "/a/b"},
		{"host/a", "host:9094", "/a"},
		{"127.0.0.1", "127.0.0.1:9094", "/"},
		{"::1", "[::1]:9094", "/"},
		{"[::1]", "[::1]:9094", "/"},
		{"[::1]:1", "[::1]:1", "/"},
		{"fe80::1%eth0", "[fe80::1%eth0]:9094", "/"},
		{"2001:db8::1:9094", "[2001:db8::1:9094]:9094", "/"},
		{"chirp://host", "host:9094", "/"},
		{"chirp://host:1/", "host:1", "/"},
		{"chirp://host:1/a//b/../c/", "host:1", "/a/c"},
		{"chirp://host:1/../x", "host:1", "/x"},
		{"chirp://[::1]:1/a b", "[::1]:1", "/a b"},
		{"chirp://host/a%20b", "host:9094", "/a%20b"},
		{"chirp://host/100%", "host:9094", "/100%"},
		{"chirp://host/x://y", "host:9094", "/x:/y"},
		{"/chirp/host:1/a", "host:1", "/a"},
		{"/chirp/host", "host:9094", "/"},
	} {
		server, path, err := client.ParseURL(c.in)
		if err != nil || server != c.server || path != c.path {
			t.Errorf("ParseURL(%q) = %q, %q, %v; want %q, %q", c.in, server, path, err, c.server, c.path)
		}
	}
	for _, in := range []string{
		"", "/", "/etc/passwd", "chirp://", "chirp:///a", "chirps://host/a", "http://host", "host:", "host:0", "host:65536",
		"host:port", "host:-1", "[::1", "::1]", "[host]x:1", "1:2:3", "::g", "a b:1", "user@host", "[]:1", ":1",
	} {
		if server, path, err := client.ParseURL(in); err == nil {
			t.Errorf("ParseURL(%q) = %q, %q; want an error", in, server, path)
		} else if !strings.Contains(err.Error(), "chirp") {
			t.Errorf("ParseURL(%q): %v does not say what would do", in, err)
		}
	}
}

func FuzzParseURL(f *testing.F) {
	for _, s := range []string{"host", "[::1]:9094/a", "chirp://h:1/a b", "/chirp/h/x", "::1%eth0", "[::1%a/b]:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		server, path, err := client.ParseURL(s)
		if err != nil {
			return
		}
		again, samePath, err := client.ParseURL("chirp://" + server + path)
		if err != nil || again != server || samePath != path {
			t.Errorf("ParseURL(%q) = %q, %q, and that is %q, %q, %v", s, server, path, again, samePath, err)
		}
	})
}
