package installer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// ErrSignature: there is no signature, or it is not one of the given key.
var ErrSignature = errors.New("signature is not good")

// PublicKey verifies signatures in minisign's form. The zero value is no key.
type PublicKey struct {
	key minisign.PublicKey
	set bool
}

// IsZero reports whether there is no key.
func (k PublicKey) IsZero() bool { return !k.set }

// String returns the key as one line of base64.
func (k PublicKey) String() string { return k.key.String() }

// ParsePublicKey reads a key from its base64 text, or from the file of that name.
func ParsePublicKey(s string) (k PublicKey, err error) {
	text := []byte(s)
	if err = k.key.UnmarshalText(text); err != nil {
		if text, err = os.ReadFile(s); err != nil {
			return k, fmt.Errorf("public key %q is neither a key nor a file that can be read: %w", s, err)
		}
		if err = k.key.UnmarshalText(text); err != nil {
			return k, fmt.Errorf("public key %s: %w", s, err)
		}
	}
	k.set = true
	return k, nil
}

// verify checks a message's signature; where the signature's trusted comment
// names a file, it must be name.
func (k PublicKey) verify(message, signature []byte, name string) error {
	var sig minisign.Signature
	if err := sig.UnmarshalText(signature); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if !minisign.Verify(k.key, message, signature) {
		return k.notOurs(sig)
	}
	return checkComment(sig, name)
}

func (k PublicKey) notOurs(sig minisign.Signature) error {
	if sig.KeyID != k.key.ID() {
		return fmt.Errorf("%w: it was made with key %X, not %X", ErrSignature, sig.KeyID, k.key.ID())
	}
	return fmt.Errorf("%w: the content is not what was signed", ErrSignature)
}

// checkComment refuses a good signature under another name: an old release for a
// new one.
func checkComment(sig minisign.Signature, name string) error {
	for field := range strings.FieldsSeq(sig.TrustedComment) {
		if file, ok := strings.CutPrefix(field, "file:"); ok && file != name {
			return fmt.Errorf("%w: it was made for %q, not for %q", ErrSignature, file, name)
		}
	}
	return nil
}

// PrivateKey makes signatures.
type PrivateKey struct{ key minisign.PrivateKey }

// Public returns the key that verifies.
func (k PrivateKey) Public() PublicKey {
	return PublicKey{key: k.key.Public().(minisign.PublicKey), set: true}
}

// NewKey makes a pair of keys: the private one in file, mode 0600, encrypted
// unless password is "", and the public one in file.pub. Neither may exist.
func NewKey(file, password string) (PrivateKey, error) {
	public, private, err := minisign.GenerateKey(nil)
	if err != nil {
		return PrivateKey{}, err
	}
	text, err := private.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, private)
	}
	if err != nil {
		return PrivateKey{}, err
	}
	if err := writeNew(file, text, 0o600); err != nil {
		return PrivateKey{}, fmt.Errorf("new key: %w", err)
	}
	line, _ := public.MarshalText() // its documentation: never an error
	if err := writeNew(file+".pub", append(line, '\n'), 0o644); err != nil {
		return PrivateKey{}, fmt.Errorf("new key: %w", errors.Join(err, os.Remove(file)))
	}
	return PrivateKey{private}, nil
}

// writeNew makes a file that must not exist, whole or not at all.
func writeNew(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), tempPattern(path))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when it was published
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return Publish(f.Name(), path)
}

// ReadKey reads a private key, of NewKey or of minisign. A file that others may
// read is refused. The password is asked for only if the key is encrypted.
func ReadKey(file string, password func() (string, error)) (k PrivateKey, err error) {
	fail := func(err error) (PrivateKey, error) { return PrivateKey{}, fmt.Errorf("key %s: %w", file, err) }
	f, err := openRegular(file)
	if err != nil {
		return PrivateKey{}, err
	}
	f.Close()
	st, err := os.Stat(file)
	if err != nil {
		return PrivateKey{}, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fail(fmt.Errorf("others may read it (mode %04o): chmod 600, or make a new one", st.Mode().Perm()))
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return PrivateKey{}, err
	}
	if !minisign.IsEncrypted(text) {
		if err := k.key.UnmarshalText(text); err != nil {
			return fail(err)
		}
		return k, nil
	}
	secret, err := password()
	if err != nil {
		return fail(err)
	}
	if k.key, err = minisign.DecryptKey(secret, text); err != nil {
		return fail(err)
	}
	return k, nil
}

// sign signs a file of that name. The same content gives the same signature.
func (k PrivateKey) sign(message []byte, name string) []byte {
	r := minisign.NewReader(bytes.NewReader(message)) // signs the hash, as minisign does today
	_, _ = io.Copy(io.Discard, r)                     // from memory
	return r.SignWithComments(k.key, "file:"+name, "verify with the key "+k.Public().String())
}
