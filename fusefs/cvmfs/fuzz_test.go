package cvmfs

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// seeds are a manifest and a white-list, properly signed.
func seeds(f *testing.F) (manifest, whitelist []byte) {
	f.Helper()
	p := publish(f, map[string]cvmfstest.File{"f": {}})
	for file, to := range map[string]*[]byte{manifestFile: &manifest, whitelistFile: &whitelist} {
		text, err := os.ReadFile(filepath.Join(p.Dir, file))
		if err != nil {
			f.Fatal(err)
		}
		*to = text
	}
	return manifest, whitelist
}

func FuzzManifest(f *testing.F) {
	text, _ := seeds(f)
	f.Add(text)
	f.Add([]byte("C\n--\n\n"))
	f.Add([]byte("Cda39a3ee5e6b4b0d3255bfef95601890afd80709-shake128\nR" + rootHash + "\nD900\nS3\nNx\nX\n--\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, l, err := openManifest(text, testName)
		if err == nil && (m.name != testName || m.ttl < 0 || l.signature == nil) {
			t.Errorf("%+v", m)
		}
		if lines, _, ok := strings.Cut(string(text), "\n--\n"); ok { // past the hash, which a fuzzer does not find
			m, err = parseManifest(strings.Split(lines, "\n"))
			if (m == nil) == (err == nil) {
				t.Errorf("%v, %v", m, err)
			}
		}
	})
}

func FuzzWhitelist(f *testing.F) {
	_, text := seeds(f)
	keys := []*rsa.PublicKey{&testKeys().Master.PublicKey}
	f.Add(text)
	f.Add([]byte("20200101000000\nE20300101000000\nNx\nVpkcs7\n--\n"))
	f.Add([]byte("\nE\nN\n--\nda39a3ee5e6b4b0d3255bfef95601890afd80709\n"))
	f.Fuzz(func(t *testing.T, changed []byte) {
		_, err := verifyWhitelist(changed, keys, testName, time.Now())
		if err == nil && !bytes.Equal(changed, text) {
			t.Errorf("taken for a white-list: %q", changed)
		}
		if lines, _, ok := strings.Cut(string(changed), "\n--\n"); ok {
			w, err := parseWhitelist(strings.Split(lines, "\n"))
			if (w == nil) == (err == nil) {
				t.Errorf("%v, %v", w, err)
			}
		}
	})
}

func FuzzOptions(f *testing.F) {
	f.Add("url=http://a/cvmfs/r;http://b proxies=p|q;DIRECT,quota_limit=5 timeout=3")
	f.Add(`cachedir=/a\,b\ c\\d,force_signing`)
	f.Add("=,=\\")
	f.Fuzz(func(t *testing.T, text string) {
		o, err := ParseOptions(text)
		if err != nil {
			return
		}
		for _, u := range o.URLs {
			if !strings.HasPrefix(strings.ToLower(u), "http") {
				t.Errorf("%q gave the server %q", text, u)
			}
		}
		for _, group := range o.Proxies {
			if len(group) == 0 {
				t.Errorf("%q gave a group without proxies", text)
			}
		}
		newRoutes(o.URLs, o.Proxies).order("x")
	})
}

// FuzzObject decodes what servers may send for an object.
func FuzzObject(f *testing.F) {
	var good bytes.Buffer
	content := []byte("what it should be")
	deflate(&good, content)
	w := want{object: object{sum: sha1Hash.sum(good.Bytes())}, size: int64(len(content))}
	f.Add(good.Bytes())
	f.Add([]byte{})
	f.Add(good.Bytes()[:8])
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		err := w.decode(&out, bytes.NewReader(data))
		if same := bytes.Equal(data, good.Bytes()); same != (err == nil) {
			t.Errorf("%x: %v", data, err)
		}
		if err != nil && (!isBad(err) || !errors.Is(err, ErrCorrupt)) {
			t.Errorf("%x: not bad data: %v", data, err)
		}
		if out.Len() > len(content)+1 {
			t.Errorf("%x: %d bytes came out", data, out.Len())
		}
	})
}
