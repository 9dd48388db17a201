package chirpd

import (
	"crypto/md5"  //nolint:gosec // the protocol's algorithms, for comparing copies
	"crypto/sha1" //nolint:gosec // the same
	"crypto/sha256"
	"hash"
	"io"

	"lukechampine.com/blake3"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// sums are the algorithms of hash; sha256 and blake3 are ours.
var sums = map[string]func() hash.Hash{
	"md5": md5.New, "sha1": sha1.New, "sha256": sha256.New,
	"blake3": func() hash.Hash { return blake3.New(32, nil) },
}

func (s *session) md5(r *wire.MD5) error { return s.sum(md5.New(), r.Path) }

func (s *session) hash(r *wire.Hash) error {
	algorithm, ok := sums[r.Algorithm]
	if !ok {
		return wire.InvalidRequest
	}
	return s.sum(algorithm(), r.Path)
}

func (s *session) sum(h hash.Hash, path string) error {
	f, _, err := s.readable(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := s.feed(h, f); err != nil {
		return err
	}
	return s.replyText(h.Sum(nil))
}

// feed gives a whole file to h; the server's end ends it.
func (s *session) feed(h hash.Hash, f *confine.File) error {
	piece := pieces.Get().(*[pieceSize]byte)
	defer pieces.Put(piece)
	for {
		n, err := f.Read(piece[:])
		h.Write(piece[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.srv.ctx.Err(); err != nil {
			return err
		}
	}
}

// setrep accepts a number of replicas; there is one.
func (s *session) setrep(r *wire.Setrep) error {
	return s.object(r.Path, true, acl.Write, func(*found) error { return nil })
}
