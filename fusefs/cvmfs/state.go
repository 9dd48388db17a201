package cvmfs

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	manifestFile  = ".cvmfspublished"
	whitelistFile = ".cvmfswhitelist"
	// maxText bounds a manifest, a white-list and a certificate, in bytes.
	maxText = 256 << 10
)

// trusted is a manifest that was verified, with what vouches for it.
type trusted struct {
	*manifest
	text      []byte // of the manifest
	whitelist []byte
}

// findManifest returns the newest manifest: the one that the servers have, verified.
// When none of them can be reached, and when what they have is older, it is the one
// that was seen last, as long as the white-list that vouches for it holds.
func (r *Repository) findManifest(ctx context.Context) (*manifest, error) {
	known := r.recall(ctx)
	var found *trusted
	err := r.net.get(ctx, manifestFile, func(body io.Reader) error {
		text, err := readText(body)
		if err != nil {
			return err
		}
		if known != nil && bytes.Equal(text, known.text) {
			found = known
			return nil
		}
		found, err = r.verify(ctx, text, known)
		return err
	})
	switch {
	case err != nil && known != nil && errors.Is(err, ErrUnreachable):
		r.log.Warn("cvmfs: no server can be reached; showing the revision seen last", "revision", known.revision, "err", err)
		return known.manifest, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", manifestFile, err)
	case known != nil && found.revision < known.revision:
		r.log.Warn("cvmfs: the servers have an older revision than was seen before", "theirs", found.revision, "revision", known.revision)
		return known.manifest, nil
	case found != known:
		r.remember(found)
	}
	return found.manifest, nil
}

// readText reads a small text. One that is too large is a *badData.
func readText(body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxText+1))
	if err == nil && len(text) > maxText {
		err = bad(ErrCorrupt, "it is longer than %d bytes", maxText)
	}
	return text, err
}

// verify checks a new manifest. With a new one always comes a new white-list, so that
// a certificate that was taken off it is not trusted any longer; only when there is
// none to be had does the known one still count.
func (r *Repository) verify(ctx context.Context, text []byte, known *trusted) (*trusted, error) {
	m, l, err := openManifest(text, r.name)
	if err != nil {
		return nil, err
	}
	cert, err := r.certificate(ctx, m)
	if err != nil {
		return nil, err
	}
	if !l.signedWith(cert) {
		return nil, bad(ErrUntrusted, "its certificate's key did not make the signature")
	}
	list, err := r.fetchWhitelist(ctx)
	if errors.Is(err, ErrUnreachable) && known != nil {
		list, err = known.whitelist, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", whitelistFile, err)
	}
	w, err := verifyWhitelist(list, r.keys, r.name, time.Now())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", whitelistFile, err)
	}
	if !w.lists(cert) {
		return nil, bad(ErrUntrusted, "the certificate that signed it is not on the white-list")
	}
	return &trusted{m, text, list}, nil
}

// certificate returns the certificate that is to have signed m.
func (r *Repository) certificate(ctx context.Context, m *manifest) (*x509.Certificate, error) {
	f, size, err := r.fetch.open(ctx, want{object: m.cert, size: unknown})
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	defer f.Close()
	if size > maxText {
		return nil, bad(ErrUntrusted, "the certificate has %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, err
	}
	return parseCertificate(text)
}

// fetchWhitelist returns a white-list that is good now.
func (r *Repository) fetchWhitelist(ctx context.Context) (text []byte, err error) {
	err = r.net.get(ctx, whitelistFile, func(body io.Reader) error {
		text, err = readText(body)
		if err == nil {
			_, err = verifyWhitelist(text, r.keys, r.name, time.Now())
		}
		return err
	})
	return text, err
}

// recall returns what was remembered, as far as it can be trusted still: it is
// verified again, with the keys of now. It returns nil when there is nothing.
func (r *Repository) recall(ctx context.Context) *trusted {
	text, err1 := r.store.read(r.stateFile("manifest"), maxText)
	list, err2 := r.store.read(r.stateFile("whitelist"), maxText)
	if err1 != nil || err2 != nil {
		return nil
	}
	w, err := verifyWhitelist(list, r.keys, r.name, time.Now())
	if err != nil {
		r.log.Debug("cvmfs: the white-list in the cache does not count", "err", err)
		return nil
	}
	m, l, err := openManifest(text, r.name)
	if err != nil || !r.store.has(m.cert) {
		return nil
	}
	cert, err := r.certificate(ctx, m)
	if err != nil || !l.signedWith(cert) || !w.lists(cert) {
		r.log.Debug("cvmfs: the manifest in the cache does not count", "err", err)
		return nil
	}
	return &trusted{m, text, list}
}

// remember keeps a manifest for the next time. Processes that do so at the same time
// may leave a white-list and a manifest of two of them: both are good, or recall finds
// that they do not fit and does without.
func (r *Repository) remember(t *trusted) {
	err := r.store.mkdir("repos/" + r.name)
	if err == nil {
		err = errors.Join(r.store.write(r.stateFile("whitelist"), t.whitelist), r.store.write(r.stateFile("manifest"), t.text))
	}
	if err != nil {
		r.log.Warn("cvmfs: the manifest cannot be kept in the cache", "err", err)
	}
}

func (r *Repository) stateFile(name string) string { return "repos/" + r.name + "/" + name }
