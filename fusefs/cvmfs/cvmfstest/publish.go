// Package cvmfstest makes CernVM-FS repositories in the documented format and signs
// them, for tests. What it writes is a directory for any web server.
package cvmfstest

import (
	"bytes"
	"crypto"
	"crypto/md5"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha3"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zlib"
	//lint:ignore SA1019 repositories are hashed with it
	"golang.org/x/crypto/ripemd160"
)

// Keys are a master key, which signs white-lists, and a publisher's certificate, which
// signs manifests.
type Keys struct {
	Master, Signer *rsa.PrivateKey
	Cert           *x509.Certificate
}

// NewKeys makes keys that nobody else has.
func NewKeys() (*Keys, error) {
	master, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "test publisher"},
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Unix(1<<32, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, signer.Public(), signer)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &Keys{master, signer, cert}, err
}

// Public is the master's public key in PEM.
func (k *Keys) Public() []byte {
	der, err := x509.MarshalPKIXPublicKey(k.Master.Public())
	if err != nil {
		panic(err) // of an RSA key: impossible
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// Publisher makes revisions of one repository.
type Publisher struct {
	// Dir is where it is written: the server's URL for it is that of Dir.
	Dir string
	// Name is the repository's.
	Name string
	Keys *Keys
	// Revision is the number of the last revision; Publish counts it up.
	Revision int
	// Schema is the revision of the catalogs' schema 2.5: 0 to 7.
	Schema int
	// Alt says that the root catalog is to be had by its alternative name only.
	Alt bool
	// Root is the hash of the last revision's root catalog.
	Root string
	// Objects are the names of all objects ever written, below data/ without slash.
	Objects map[string]bool

	size int64 // of the root catalog, when it is to be told
	zip  *zlib.Writer
}

// New makes a publisher that writes into dir, which must exist.
func New(dir, name string, keys *Keys) *Publisher {
	return &Publisher{Dir: dir, Name: name, Keys: keys, Schema: 7, Objects: make(map[string]bool)}
}

// Hash names a content hash: "", "rmd160" or "shake128".
type Hash string

// sum is the hash in digits, with the algorithm's name.
func (h Hash) sum(b []byte) string {
	switch h {
	case "rmd160":
		d := ripemd160.New()
		d.Write(b)
		return hex.EncodeToString(d.Sum(nil)) + "-rmd160"
	case "shake128":
		return hex.EncodeToString(sha3.SumSHAKE128(b, 20)) + "-shake128"
	}
	sum := sha1.Sum(b)
	return hex.EncodeToString(sum[:])
}

// bits are those of a catalog's flags.
func (h Hash) bits() int64 { return map[Hash]int64{"": 0, "rmd160": 1, "shake128": 2}[h] << 8 }

// Put writes an object and returns its hash.
func (p *Publisher) Put(content []byte, h Hash, plain bool, suffix string) (string, error) {
	data := content
	if !plain {
		data = p.deflate(content)
	}
	sum := h.sum(data)
	name := sum + suffix
	p.Objects[name] = true
	path := p.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return sum, os.WriteFile(path, data, 0o644)
}

// deflate compresses.
func (p *Publisher) deflate(content []byte) []byte {
	var buf bytes.Buffer
	if p.zip == nil {
		p.zip = zlib.NewWriter(nil)
	}
	p.zip.Reset(&buf)
	_, _ = p.zip.Write(content)
	_ = p.zip.Close()
	return buf.Bytes()
}

// Path is the file of an object.
func (p *Publisher) Path(name string) string {
	return filepath.Join(p.Dir, "data", name[:2], name[2:])
}

// Publish writes a revision with these files, by their paths without a slash at the
// beginning; directories above them need not be named. It signs the manifest, and a
// white-list that is good for a day.
func (p *Publisher) Publish(files map[string]File) error {
	p.Revision++
	b := &builder{p: p, catalogs: make(map[string]*catalog)}
	root, size, err := b.build(files)
	if err != nil {
		return err
	}
	p.Root = root
	if p.Alt {
		if err := os.Rename(p.Path(root+"C"), filepath.Join(p.Dir, ".cvmfsalt-"+root+"C")); err != nil {
			return err
		}
	}
	if err := p.SignWhitelist(time.Now().Add(24 * time.Hour)); err != nil {
		return err
	}
	p.size = size
	return p.SignManifest(nil)
}

// SignManifest writes the manifest of the last revision; lines replace its own, by
// their letters.
func (p *Publisher) SignManifest(lines map[string]string) error {
	cert, err := p.Put(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Keys.Cert.Raw}), "", false, "X")
	if err != nil {
		return err
	}
	values := map[string]string{
		"C": p.Root, "R": hex.EncodeToString(md5.New().Sum(nil)), "D": "240", "S": fmt.Sprint(p.Revision),
		"G": "no", "B": strings.TrimPrefix(fmt.Sprint(p.size), "0"), "A": map[bool]string{true: "yes", false: "no"}[p.Alt], "N": p.Name, "X": cert, "T": fmt.Sprint(time.Now().Unix()),
	}
	var body strings.Builder
	for _, key := range strings.Split("C B R D S G A N X T", " ") {
		v, given := lines[key]
		if !given {
			v = values[key]
		}
		if v != "" {
			body.WriteString(key + v + "\n")
		}
	}
	sum := Hash("").sum([]byte(body.String()))
	digest := sha1.Sum([]byte(sum))
	sig, err := rsa.SignPKCS1v15(nil, p.Keys.Signer, crypto.SHA1, digest[:])
	if err != nil {
		return err
	}
	return p.write(".cvmfspublished", body.String(), sum, sig)
}

// SignWhitelist writes a white-list that is good until a time, with the certificate's
// fingerprint and these.
func (p *Publisher) SignWhitelist(until time.Time, fingerprints ...string) error {
	sum := sha1.Sum(p.Keys.Cert.Raw)
	return p.SignList(until, p.Name, append(fingerprints, strings.TrimSuffix(strings.ToUpper(fmt.Sprintf("% x", sum)), " "))...)
}

// SignList writes a white-list with a name and only these fingerprints, whose bytes
// may be separated by blanks or colons.
func (p *Publisher) SignList(until time.Time, name string, fingerprints ...string) error {
	const layout = "20060102150405"
	body := until.Add(-30*24*time.Hour).UTC().Format(layout) + "\nE" + until.UTC().Format(layout) + "\nN" + name + "\n"
	for _, f := range fingerprints {
		body += strings.ReplaceAll(f, " ", ":") + "\n"
	}
	hash := Hash("").sum([]byte(body))
	sig, err := rsa.SignPKCS1v15(nil, p.Keys.Master, 0, []byte(hash))
	if err != nil {
		return err
	}
	return p.write(".cvmfswhitelist", body, hash, sig)
}

// write writes a signed text in one step.
func (p *Publisher) write(name, body, sum string, sig []byte) error {
	path := filepath.Join(p.Dir, name)
	if err := os.WriteFile(path+".new", append([]byte(body+"--\n"+sum+"\n"), sig...), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
