package cvmfs

import (
	"crypto/sha1"
	"crypto/sha3"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"

	//lint:ignore SA1019 repositories are hashed with it
	"golang.org/x/crypto/ripemd160"
)

// algorithm is a content hash; the numbers are those of a catalog's flags.
type algorithm uint8

const (
	sha1Hash algorithm = iota
	ripemd160Hash
	shake128Hash
)

// hashSize is the size of every content hash, in bytes.
const hashSize = 20

// algorithmNames come after the digits of a hash.
var algorithmNames = [...]string{sha1Hash: "", ripemd160Hash: "-rmd160", shake128Hash: "-shake128"}

// The letters that come after the hash of what is no plain file.
const (
	noSuffix    byte = 0
	catalogObj  byte = 'C'
	partialObj  byte = 'P'
	certificate byte = 'X'
)

// object names an object of a repository. It is comparable.
type object struct {
	sum    [hashSize]byte
	alg    algorithm
	suffix byte
	plain  bool // stored without compression
}

// parseObject reads the digits of a hash with the name of its algorithm after them.
func parseObject(s string, suffix byte) (object, error) {
	o := object{suffix: suffix}
	name := ""
	if len(s) >= 2*hashSize {
		name = s[2*hashSize:]
	}
	for alg, n := range algorithmNames {
		if n == name {
			o.alg = algorithm(alg)
			if n, err := hex.Decode(o.sum[:], []byte(s[:min(len(s), 2*hashSize)])); err == nil && n == hashSize {
				return o, nil
			}
		}
	}
	return object{}, fmt.Errorf("%w: %.60q is no content hash", ErrCorrupt, s)
}

// String is the hash as manifests and catalogs write it.
func (o object) String() string { return hex.EncodeToString(o.sum[:]) + algorithmNames[o.alg] }

// name is what the object's files are called.
func (o object) name() string {
	if o.suffix == noSuffix {
		return o.String()
	}
	return o.String() + string(rune(o.suffix))
}

// path is where servers have the object, below the repository.
func (o object) path() string { n := o.name(); return "data/" + n[:2] + "/" + n[2:] }

// digest makes hashes of one algorithm.
func (a algorithm) digest() digest {
	switch a {
	case ripemd160Hash:
		return stdDigest{ripemd160.New()}
	case shake128Hash:
		return &shakeDigest{sha3.NewSHAKE128()}
	}
	return stdDigest{sha1.New()}
}

// sum hashes b.
func (a algorithm) sum(b []byte) (sum [hashSize]byte) {
	d := a.digest()
	_, _ = d.Write(b)
	return d.end()
}

// digest is a hash in the making.
type digest interface {
	Write(p []byte) (int, error)
	end() [hashSize]byte
}

type stdDigest struct{ hash.Hash }

func (d stdDigest) end() (sum [hashSize]byte) {
	d.Sum(sum[:0])
	return sum
}

// shakeDigest is SHAKE128 with 160 bits of output.
type shakeDigest struct{ *sha3.SHAKE }

func (d *shakeDigest) end() (sum [hashSize]byte) {
	_, _ = d.Read(sum[:])
	return sum
}

// parseFingerprint reads a line of a white-list: pairs of digits with colons, and
// perhaps a comment. ok is false for lines that are none.
func parseFingerprint(line string) (o object, ok bool) {
	if i := strings.IndexAny(line, " \t#"); i >= 0 {
		line = line[:i]
	}
	o, err := parseObject(strings.ToLower(strings.ReplaceAll(line, ":", "")), noSuffix)
	return o, err == nil
}
