package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"aead.dev/minisign"
)

// VerifyOptions says against what an archive is verified. The zero value means
// the checksum that lies beside it.
type VerifyOptions struct {
	// SHA256, if not "", is the checksum that the archive must have.
	SHA256 string
	// Key, if not zero, must have signed the archive (FILE.minisig) or the
	// SHA256SUMS beside it.
	Key PublicKey
	// Unsigned lets an archive pass whose signature lies beside it when no Key is
	// given to check it with.
	Unsigned bool
	// Limits bounds the archive's size and shape.
	Limits Limits
	// Progress, if not nil, is told the state of the reading.
	Progress func(Summary)
}

// Verified tells what was found good.
type Verified struct {
	Path    string  `json:"path"`
	SHA256  string  `json:"sha256"` // of the archive
	Size    int64   `json:"size"`   // bytes
	Sums    bool    `json:"sums"`   // the checksum is that of SHA256SUMS or of VerifyOptions
	Signed  bool    `json:"signed"` // by VerifyOptions.Key
	Summary Summary `json:"-"`
}

// Verify reads an archive to its end and checks it: its checksum, its signature,
// and that Unpack would take all of it. At least a checksum or a signature must be
// there to compare with.
func Verify(ctx context.Context, archive string, opts VerifyOptions) (Verified, error) {
	v := Verified{Path: archive}
	if err := v.digest(ctx, opts); err != nil {
		return v, fmt.Errorf("verify %s: %w", archive, err)
	}
	var err error
	v.Summary, err = CheckArchive(ctx, archive, UnpackOptions{Limits: opts.Limits, Progress: opts.Progress})
	return v, err
}

// digest checks what there is to check of the file's bytes.
func (v *Verified) digest(ctx context.Context, opts VerifyOptions) (err error) {
	want := strings.ToLower(opts.SHA256)
	if err := checkDigest(want); err != nil {
		return err
	}
	dir, name := filepath.Split(v.Path)
	dir = filepath.Clean(dir)
	listed, err := v.listed(dir, name, opts)
	if err != nil {
		return err
	}
	if want == "" {
		want = listed
	}
	if err := v.signature(ctx, opts); err != nil {
		return err
	}
	if want == "" && !v.Signed {
		return fmt.Errorf("there is nothing to compare with: no line in %s beside it, no signature; give the checksum", SumsFile)
	}
	if v.SHA256, v.Size, err = hashFile(ctx, v.Path); err != nil {
		return err
	}
	for _, sum := range []string{want, listed} {
		if sum != "" && sum != v.SHA256 {
			return fmt.Errorf("%w: SHA-256 is %s, expected %s", ErrChecksum, v.SHA256, sum)
		}
	}
	v.Sums = want != ""
	return nil
}

// listed returns the checksum that the SHA256SUMS beside the archive has, "" for
// none. With a key a signature of it must be good; it then signs the archive too.
func (v *Verified) listed(dir, name string, opts VerifyOptions) (string, error) {
	all, err := readSums(dir)
	if err != nil || all[name] == "" {
		return "", err
	}
	signature, err := os.ReadFile(filepath.Join(dir, SignatureFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all[name], nil
	}
	if err != nil {
		return "", err
	}
	if opts.Key.IsZero() {
		return all[name], needKey(SignatureFile, opts)
	}
	text, err := os.ReadFile(filepath.Join(dir, SumsFile))
	if err == nil {
		err = opts.Key.verify(text, signature, SumsFile)
	}
	if err == nil {
		all, err = parseSums(text) // what was verified is what counts
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", SignatureFile, err)
	}
	v.Signed = all[name] != ""
	return all[name], nil
}

func needKey(file string, opts VerifyOptions) error {
	if opts.Unsigned {
		return nil
	}
	return fmt.Errorf("%s is there: give the public key to check it with, or say that the signature does not matter", file)
}

// signature checks the signature of the archive itself.
func (v *Verified) signature(ctx context.Context, opts VerifyOptions) error {
	text, err := os.ReadFile(v.Path + ".minisig")
	if errors.Is(err, fs.ErrNotExist) {
		if !opts.Key.IsZero() && !v.Signed {
			return fmt.Errorf("%w: neither %s.minisig nor a signed line in %s is there", ErrSignature, v.Path, SumsFile)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if opts.Key.IsZero() {
		return needKey(v.Path+".minisig", opts)
	}
	var sig minisign.Signature
	if err := sig.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if sig.Algorithm != minisign.HashEdDSA {
		return fmt.Errorf("%w: it is of the kind that needs the whole file in memory: sign again, minisign -H", ErrSignature)
	}
	f, err := openRegular(v.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := minisign.NewReader(&contextReader{ctx, f})
	if err := drain(r); err != nil {
		return err
	}
	if !r.Verify(opts.Key.key, text) {
		return opts.Key.notOurs(sig)
	}
	v.Signed = true
	return checkComment(sig, filepath.Base(v.Path))
}
