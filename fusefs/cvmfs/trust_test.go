package cvmfs

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zlib"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

var small = map[string]cvmfstest.File{
	"f":        {Content: []byte("the truth, in whole\n")},
	"nested":   {Nested: true},
	"nested/g": {Content: []byte("more of it")},
	"c":        {Content: noise(100_000, 2), Chunks: []int{40_000}},
}

// rewrite changes a file of the repository.
func rewrite(t *testing.T, p *published, name string, change func([]byte) []byte) {
	t.Helper()
	path := filepath.Join(p.Dir, name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(bytes.Clone(b)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace is a change of one text for another one.
func replace(from, to string) func([]byte) []byte {
	return func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) }
}

// flipLast changes the last byte: of the signature.
func flipLast(b []byte) []byte {
	b[len(b)-1] ^= 1
	return b
}

// forged makes a text's hash fit its new content again, as anybody can.
func forged(change func([]byte) []byte) func([]byte) []byte {
	return func(b []byte) []byte {
		body, rest, _ := bytes.Cut(b, []byte("\n--\n"))
		_, sig, _ := bytes.Cut(rest, []byte("\n"))
		body = append(change(body), '\n')
		sum := object{sum: sha1Hash.sum(body)}
		return append([]byte(string(body)+"--\n"+sum.String()+"\n"), sig...)
	}
}

// attack is what somebody between us and the publisher, or a server, may do.
type attack struct {
	do   func(t *testing.T, p *published) error
	is   error // how it is refused
	says string
}

// otherKeys are those of somebody else.
var otherKeys = sync.OnceValue(func() *cvmfstest.Keys {
	k, err := cvmfstest.NewKeys()
	if err != nil {
		panic(err)
	}
	return k
})

// day is when white-lists expire.
func day() time.Time { return time.Now().Add(24 * time.Hour) }

var manifestAttacks = map[string]attack{
	"manifest: text changed": {func(t *testing.T, p *published) error {
		rewrite(t, p, manifestFile, replace("S1\n", "S2\n"))
		return nil
	}, ErrUntrusted, "its text was changed"},
	"manifest: text and hash changed": {func(t *testing.T, p *published) error {
		rewrite(t, p, manifestFile, forged(replace("\nS1", "\nS2")))
		return nil
	}, ErrUntrusted, "did not make the signature"},
	"manifest: signature changed": {func(t *testing.T, p *published) error {
		rewrite(t, p, manifestFile, flipLast)
		return nil
	}, ErrUntrusted, "did not make the signature"},
	"manifest: cut": {func(t *testing.T, p *published) error {
		rewrite(t, p, manifestFile, func(b []byte) []byte { return b[:60] })
		return nil
	}, ErrUntrusted, "it is not signed"},
	"manifest: of another repository, properly signed": {func(t *testing.T, p *published) error {
		return p.SignManifest(map[string]string{"N": "other.example.org"})
	}, ErrUntrusted, `that of "other.example.org"`},
	"manifest: signed by somebody else": {func(t *testing.T, p *published) error {
		p.Keys = otherKeys()
		return p.SignManifest(nil)
	}, ErrUntrusted, "not on the white-list"},
	"manifest: root of a part": {func(t *testing.T, p *published) error {
		return p.SignManifest(map[string]string{"R": strings.Repeat("0", 32)})
	}, ErrUntrusted, "whole repository"},
}

var whitelistAttacks = map[string]attack{
	"white-list: expired": {func(t *testing.T, p *published) error {
		return p.SignWhitelist(time.Now().Add(-time.Hour))
	}, ErrExpired, "has to sign it again"},
	"white-list: expiry changed": {func(t *testing.T, p *published) error {
		if err := p.SignWhitelist(time.Now().Add(-time.Hour)); err != nil {
			return err
		}
		rewrite(t, p, whitelistFile, forged(func(b []byte) []byte {
			i := bytes.Index(b, []byte("\nE20"))
			return append(append(b[:i+2:i+2], "2999"...), b[i+6:]...)
		}))
		return nil
	}, ErrUntrusted, "none of the given public keys"},
	"white-list: fingerprint added": {func(t *testing.T, p *published) error {
		rewrite(t, p, whitelistFile, forged(func(b []byte) []byte { return append(b, "\nAA:BB"...) }))
		return nil
	}, ErrUntrusted, "none of the given public keys"},
	"white-list: of another repository": {func(t *testing.T, p *published) error {
		return p.SignList(day(), "other.example.org")
	}, ErrUntrusted, `that of "other.example.org"`},
	"white-list: empty": {func(t *testing.T, p *published) error {
		return p.SignList(day(), testName)
	}, ErrUntrusted, "not on the white-list"},
	"white-list: signed by another master": {func(t *testing.T, p *published) error {
		keys := *p.Keys
		keys.Master = otherKeys().Master
		p.Keys = &keys
		return p.SignWhitelist(day())
	}, ErrUntrusted, "none of the given public keys"},
	"white-list: asks for certificate authorities": {func(t *testing.T, p *published) error {
		return p.SignList(day(), testName, "Vpkcs7")
	}, ErrUnsupported, "pkcs7"},
	"white-list: missing": {func(t *testing.T, p *published) error {
		return os.Remove(filepath.Join(p.Dir, whitelistFile))
	}, ErrMissing, whitelistFile},
}

var objectAttacks = map[string]attack{
	"certificate: changed": {func(t *testing.T, p *published) error {
		rewriteObject(t, p, 'X', func([]byte) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: otherKeys().Cert.Raw})
		})
		return nil
	}, ErrCorrupt, "another hash"},
	"root catalog: changed": {func(t *testing.T, p *published) error {
		rewriteObject(t, p, 'C', func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
		return nil
	}, ErrCorrupt, "another hash"},
}

func TestRefused(t *testing.T) {
	for _, cases := range []map[string]attack{manifestAttacks, whitelistAttacks, objectAttacks} {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := publish(t, small)
				key := p.Keys.Public()
				if err := c.do(t, p); err != nil {
					t.Fatal(err)
				}
				_, err := p.try(t, func(c *Config) { c.Keys = [][]byte{key} })
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v, want %v that says %q", err, c.is, c.says)
				}
				if err != nil && !strings.HasPrefix(err.Error(), "cvmfs "+testName+": open: ") {
					t.Errorf("the error does not name the repository: %v", err)
				}
			})
		}
	}
}

// rewriteObject gives every object with this suffix another content, well compressed
// as if it were right.
func rewriteObject(t *testing.T, p *published, suffix byte, change func([]byte) []byte) {
	t.Helper()
	for name := range p.Objects {
		if len(name) == 2*hashSize && suffix == noSuffix || name[len(name)-1] == suffix {
			forgeObject(t, p.Path(name), change)
		}
	}
}

func forgeObject(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	content := inflate(t, data)
	var out bytes.Buffer
	deflate(&out, change(content))
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// deflate compresses content into out.
func deflate(out *bytes.Buffer, content []byte) {
	z := zlib.NewWriter(out)
	_, _ = z.Write(content)
	_ = z.Close()
}

func inflate(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestForgedContent: a server sends other content of the same size, compressed as it
// should be. A client that only uncompresses would show it.
func TestForgedContent(t *testing.T) {
	t.Parallel()
	lie := []byte("a lie, in other words")[:len(small["f"].Content)]
	for name, suffix := range map[string]byte{"file": noSuffix, "chunk": partialObj} {
		t.Run(name, func(t *testing.T) {
			p := publish(t, small)
			r := p.open(t)
			rewriteObject(t, p, suffix, func(b []byte) []byte { return append(bytes.Clone(lie), b[min(len(lie), len(b)):]...) })
			path := map[byte]string{noSuffix: "f", partialObj: "c"}[suffix]
			e := lookupFrom(t, r, r.root, path)
			if suffix == noSuffix { // the attack works where nobody looks at the hash
				data, err := os.ReadFile(p.Path(e.object.name()))
				if err != nil {
					t.Fatal(err)
				}
				if got := inflate(t, data); !bytes.Equal(got, lie) {
					t.Fatalf("the lie does not lie: %q", got)
				}
			}
			_, err := readNode(t.Context(), &node{repo: r, spot: r.root.below(e), entry: e})
			if !errors.Is(err, ErrCorrupt) && errnoFor(err) == 0 {
				t.Errorf("forged content was read: %v", err)
			}
			if n := countFiles(t, p.cache, "tmp"); n != 0 {
				t.Errorf("%d temporary files are left", n)
			}
		})
	}
}

// countFiles counts what is in a directory of the cache.
func countFiles(t *testing.T, cache, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(cache, dir))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestSwollen: a server sends a stream that grows without end when it is
// uncompressed. It must not fill the disk before its hash is looked at.
func TestSwollen(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	r := p.open(t)
	var bomb bytes.Buffer
	deflate(&bomb, make([]byte, 8<<20))
	e := lookupFrom(t, r, r.root, "f")
	if int64(bomb.Len()) < 1<<10 || len(inflate(t, bomb.Bytes())) != 8<<20 {
		t.Fatal("no bomb")
	}
	w := e.want()
	out := &counter{}
	if err := w.decode(out, &bomb); !errors.Is(err, ErrCorrupt) || out.n > 64<<10 {
		t.Errorf("after %d bytes: %v", out.n, err)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) { c.n += int64(len(p)); return len(p), nil }

func TestKeys(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.pub"), p.Keys.Public(), 0o644); err != nil {
		t.Fatal(err)
	}
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&p.Keys.Master.PublicKey)})
	wrong, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	wrongPEM := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(&wrong.PublicKey)})
	for name, c := range map[string]struct {
		keys  [][]byte
		paths []string
		says  string
	}{
		"a directory":        {nil, []string{dir}, ""},
		"a file":             {nil, []string{filepath.Join(dir, "a.pub")}, ""},
		"PKCS#1":             {[][]byte{pkcs1}, nil, ""},
		"one of two fits":    {[][]byte{wrongPEM, p.Keys.Public()}, nil, ""},
		"both in one text":   {[][]byte{append(wrongPEM, pkcs1...)}, nil, ""},
		"none fits":          {[][]byte{wrongPEM}, nil, "none of the given public keys"},
		"no key at all":      {nil, nil, "no public key was given"},
		"no such file":       {nil, []string{dir + "/none.pub"}, "no such file"},
		"not a key":          {[][]byte{[]byte("hello")}, nil, "no public key in PEM"},
		"a certificate":      {[][]byte{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Keys.Cert.Raw})}, nil, "no public RSA key"},
		"an empty directory": {nil, []string{t.TempDir()}, "no public key was given"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := p.try(t, func(cfg *Config) { cfg.Keys, cfg.Options.PubKeys = c.keys, c.paths })
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestFingerprints reads them in every way in which they are written.
func TestFingerprints(t *testing.T) {
	t.Parallel()
	p := publish(t, small)
	raw := p.Keys.Cert.Raw
	for _, alg := range []algorithm{sha1Hash, ripemd160Hash, shake128Hash} {
		digits := object{sum: alg.sum(raw), alg: alg}.String()
		var colons strings.Builder
		for i := 0; i < 2*hashSize; i += 2 {
			colons.WriteString(strings.ToUpper(digits[i:i+2]) + ":")
		}
		line := strings.TrimSuffix(colons.String(), ":") + strings.ToUpper(algorithmNames[alg])
		if err := p.SignList(day(), testName, "00:11", line); err != nil {
			t.Fatal(err)
		}
		p.cache = filepath.Join(t.TempDir(), "cache")
		p.open(t)
	}
	if _, ok := parseFingerprint("47:D4:D7:85:F6:10:E8:09:8E:B3:68:C7:4E:81:3D:39:1F:5F:CE:98 # who"); !ok {
		t.Error("a comment is in the way")
	}
}
