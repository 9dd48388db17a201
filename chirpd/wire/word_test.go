package wire

import "testing"

func TestPathWords(t *testing.T) {
	for _, c := range []struct{ path, word string }{
		{"/plain/name.txt", "/plain/name.txt"},
		{"/a b", "/a%20b"},
		{"/a%20b", "/a%2520b"},
		{"/100%", "/100%25"},
		{"/\xff", "/%FF"},
		{"/\n\x01", "/%0A%01"},
		{"/é", "/%C3%A9"},
		{`/<'">\`, "/%3C%27%22%3E%5C"},
		{"/{|}~", "/%7B%7C%7D%7E"},
	} {
		if got := string(AppendPath(nil, c.path)); got != c.word {
			t.Errorf("AppendPath(%q) = %q, want %q", c.path, got, c.word)
		}
		if got := DecodePath([]byte(c.word)); got != c.path {
			t.Errorf("DecodePath(%q) = %q, want %q", c.word, got, c.path)
		}
	}
}

func TestDecodePathLeavesWhatIsNotEncoded(t *testing.T) {
	for _, word := range []string{"100%", "%", "%2", "%zz", "a%g0b"} {
		if got := DecodePath([]byte(word)); got != word {
			t.Errorf("DecodePath(%q) = %q, want it as it was", word, got)
		}
	}
	if got := DecodePath([]byte("%c3%a9")); got != "é" {
		t.Errorf("small hexadecimal digits: %q", got)
	}
}

func TestCleanPath(t *testing.T) {
	for in, want := range map[string]string{
		"": "/", "/": "/", ".": "/", "a": "/a", "/a/../../b": "/b", "//a//b/": "/a/b", "../../etc": "/etc", "/a/./b": "/a/b",
	} {
		if got := CleanPath(in); got != want {
			t.Errorf("CleanPath(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a b", "%", "\xff\x00", "/é/%41"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		word := AppendPath(nil, p)
		for _, b := range word {
			if b <= ' ' || b > 'z' {
				t.Fatalf("AppendPath(%q) holds byte %#x", p, b)
			}
		}
		if back := DecodePath(word); back != p {
			t.Fatalf("%q came back as %q", p, back)
		}
	})
}
