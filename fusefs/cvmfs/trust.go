package cvmfs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// loadKeys reads public RSA keys, each text with one or more in PEM, and each path a
// file of such a text or a directory of *.pub files.
func loadKeys(texts [][]byte, paths []string) ([]*rsa.PublicKey, error) {
	var keys []*rsa.PublicKey
	for _, text := range texts {
		more, err := parseKeys(text)
		if err != nil {
			return nil, err
		}
		keys = append(keys, more...)
	}
	for _, path := range paths {
		files := []string{path}
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			files, _ = filepath.Glob(filepath.Join(path, "*.pub"))
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("public key: %w", err)
			}
			more, err := parseKeys(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			keys = append(keys, more...)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("no public key was given: name the repository's key (repoN_key, or pubkey= in repoN_options)")
	}
	return keys, nil
}

// parseKeys reads the keys of one text.
func parseKeys(text []byte) ([]*rsa.PublicKey, error) {
	var keys []*rsa.PublicKey
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		text = rest
		k, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil && block.Type == "RSA PUBLIC KEY" {
			k, err = x509.ParsePKCS1PublicKey(block.Bytes)
		}
		key, ok := k.(*rsa.PublicKey)
		if err != nil || !ok {
			return nil, errors.New("the key is no public RSA key")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("no public key in PEM is in there")
	}
	return keys, nil
}

// letter is a signed text: lines, a line --, the hash of the lines, the signature.
type letter struct {
	body      []byte // the lines, each with its line feed
	printed   []byte // the hash in digits, which is what is signed
	signature []byte
}

// openLetter takes a signed text apart and checks its hash, not its signature.
func openLetter(text []byte) (letter, error) {
	body, rest, found := bytes.Cut(text, []byte("\n--\n"))
	if !found {
		return letter{}, bad(ErrUntrusted, "it is not signed")
	}
	printed, signature, found := bytes.Cut(rest, []byte("\n"))
	if !found || len(signature) == 0 {
		return letter{}, bad(ErrUntrusted, "its signature is missing")
	}
	l := letter{body: text[:len(body)+1], printed: printed, signature: signature}
	sum, err := parseObject(string(printed), noSuffix)
	if err != nil {
		return letter{}, bad(ErrUntrusted, "its hash cannot be read")
	}
	if sum.alg.sum(l.body) != sum.sum {
		return letter{}, bad(ErrUntrusted, "its text was changed: the hash is another one")
	}
	return l, nil
}

// lines are the lines of the body.
func (l letter) lines() []string {
	return strings.Split(strings.TrimSuffix(string(l.body), "\n"), "\n")
}

// signedBy says whether the raw PKCS#1 v1.5 signature is that of one of keys.
func (l letter) signedBy(keys []*rsa.PublicKey) bool {
	for _, k := range keys {
		if rsa.VerifyPKCS1v15(k, 0, l.printed, l.signature) == nil {
			return true
		}
	}
	return false
}

// signedWith says whether the signature is that of the certificate's key.
func (l letter) signedWith(cert *x509.Certificate) bool {
	sum := sha1.Sum(l.printed)
	switch k := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA1, sum[:], l.signature) == nil
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum[:], l.signature)
	}
	return false
}

// whitelist says which certificates may sign a repository's manifests.
type whitelist struct {
	name         string
	expires      time.Time
	fingerprints []object
}

// whitelistTime is how white-lists write times, in UTC.
const whitelistTime = "20060102150405"

// parseWhitelist reads a white-list; its signature was checked.
func parseWhitelist(lines []string) (*whitelist, error) {
	if len(lines) < 3 || len(lines[1]) == 0 || lines[1][0] != 'E' || len(lines[2]) < 2 || lines[2][0] != 'N' {
		return nil, bad(ErrUntrusted, "it cannot be read")
	}
	if _, err := time.Parse(whitelistTime, lines[0]); err != nil {
		return nil, bad(ErrUntrusted, "its date cannot be read")
	}
	expires, err := time.Parse(whitelistTime, lines[1][1:])
	if err != nil {
		return nil, bad(ErrUntrusted, "its expiry cannot be read")
	}
	w := &whitelist{name: lines[2][1:], expires: expires}
	for _, line := range lines[3:] {
		if line == "Vpkcs7" || line == "Wcachain" {
			return nil, fmt.Errorf("%w: it asks for a check by certificate authorities (%s)", ErrUnsupported, line[1:])
		}
		if f, ok := parseFingerprint(line); ok {
			w.fingerprints = append(w.fingerprints, f)
		}
	}
	return w, nil
}

// verifyWhitelist reads a white-list and checks its signature, name and expiry.
func verifyWhitelist(text []byte, keys []*rsa.PublicKey, name string, now time.Time) (*whitelist, error) {
	l, err := openLetter(text)
	if err != nil {
		return nil, err
	}
	if !l.signedBy(keys) {
		return nil, bad(ErrUntrusted, "none of the given public keys made its signature")
	}
	w, err := parseWhitelist(l.lines())
	if err != nil {
		return nil, err
	}
	if w.name != name {
		return nil, bad(ErrUntrusted, "it is that of %q", w.name)
	}
	if !now.Before(w.expires) {
		return nil, bad(ErrExpired, "it was good until %s, and the repository's owner has to sign it again (is this machine's clock right?)",
			w.expires.Format(time.RFC3339))
	}
	return w, nil
}

// lists says whether the certificate's fingerprint is on the list.
func (w *whitelist) lists(cert *x509.Certificate) bool {
	for _, f := range w.fingerprints {
		if f.alg.sum(cert.Raw) == f.sum {
			return true
		}
	}
	return false
}

// parseCertificate reads a certificate in PEM.
func parseCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, bad(ErrUntrusted, "no certificate in PEM is in there")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, bad(ErrUntrusted, "%v", err)
	}
	return cert, nil
}
