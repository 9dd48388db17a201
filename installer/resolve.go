package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Latest asks for the newest version that is not a pre-release.
const Latest = "latest"

// ErrNoRelease: nothing of that name, version and platform is published.
var ErrNoRelease = errors.New("no such release")

// ResolveOptions says how to look for a release.
type ResolveOptions struct {
	// Key, if not zero, must have signed SHA256SUMS, which then alone says what
	// there is.
	Key PublicKey
	// Prereleases lets Latest be a pre-release.
	Prereleases bool
	// Fetch says by which ways. SHA256, MaxSize, Mode and Progress do not count.
	Fetch FetchOptions
}

// Platform is this machine's, as OS-ARCH.
func Platform() string { return runtime.GOOS + "-" + runtime.GOARCH }

// maxMetadata is the size of an index, of sums or of a listing.
const maxMetadata = 16 << 20

// Resolve finds a release of name in the directory from, an http, https or file
// URL or a path. version is Latest, "" for the same, or one; platform is OS-ARCH,
// "" for Platform's, and a release for any platform fits, too. It reads index.json
// or, where there is none, the web server's listing of the directory; with a key,
// only SHA256SUMS and its signature. The release's SHA256 is "" if nothing tells it.
func Resolve(ctx context.Context, from, name, version, platform string, opts ResolveOptions) (Release, error) {
	fail := func(err error) (Release, error) {
		return Release{}, fmt.Errorf("find %s in %s: %w", name, from, err)
	}
	if !releaseName.MatchString(name) {
		return fail(errors.New("that is no name of a release"))
	}
	if version == "" {
		version = Latest
	}
	want, ok := ParseVersion(version)
	if !ok && version != Latest {
		return fail(fmt.Errorf("%q is neither a version nor %q", version, Latest))
	}
	if platform == "" {
		platform = Platform()
	}
	s, err := newSite(from, opts)
	if err != nil {
		return fail(err)
	}
	defer s.close()
	all, err := s.releases(ctx, name)
	if err != nil {
		return fail(err)
	}
	r, err := choose(all, want, version, platform, opts.Prereleases)
	if err != nil {
		return fail(err)
	}
	r.Name, r.URL, r.Signed = name, s.url(r.File), !opts.Key.IsZero()
	if r.SHA256 == "" {
		r.SHA256, err = s.checksum(ctx, r.File)
	}
	if err != nil {
		return fail(err)
	}
	return r, nil
}

// choose takes the newest release that fits.
func choose(all []Release, want Version, version, platform string, pre bool) (Release, error) {
	var best Release
	var others, older []string
	for _, r := range all {
		v, _ := ParseVersion(r.Version) // was checked
		switch {
		case version != Latest && v.Compare(want) != 0:
		case r.Platform != "" && r.Platform != platform:
			others = append(others, r.Platform)
		case version == Latest && v.Prerelease() && !pre:
			older = append(older, r.Version)
		case best.File == "" || better(r, best):
			best = r
		}
	}
	switch {
	case best.File != "":
		return best, nil
	case len(all) == 0:
		return Release{}, fmt.Errorf("%w: nothing of that name is there", ErrNoRelease)
	case len(older) > 0:
		return Release{}, fmt.Errorf("%w: there are only pre-releases (%s), which must be asked for", ErrNoRelease, strings.Join(older, ", "))
	case len(others) > 0:
		slices.Sort(others)
		return Release{}, fmt.Errorf("%w: version %s is there for %s, not for %s", ErrNoRelease, version,
			strings.Join(slices.Compact(others), ", "), platform)
	}
	return Release{}, fmt.Errorf("%w: version %s is not there", ErrNoRelease, version)
}

// better prefers the newer, then the one made for the platform.
func better(a, b Release) bool {
	v, _ := ParseVersion(a.Version)
	w, _ := ParseVersion(b.Version)
	if c := v.Compare(w); c != 0 {
		return c > 0
	}
	if (a.Platform == "") != (b.Platform == "") {
		return a.Platform != ""
	}
	return compareReleases(a, b) > 0
}

// site is a published directory, and a private one for what is fetched from it.
type site struct {
	base *url.URL // its path ends with a slash
	opts ResolveOptions
	tmp  string
}

func newSite(from string, opts ResolveOptions) (*site, error) {
	base, err := parseSource(from)
	if err != nil {
		return nil, err
	}
	if base.RawQuery != "" || base.Fragment != "" {
		return nil, errors.New("the address of a directory has no query and no fragment")
	}
	if base.Scheme == "file" {
		if base.Path, err = filepath.Abs(base.Path); err != nil {
			return nil, err
		}
	}
	base = base.JoinPath("/")
	tmp, err := os.MkdirTemp("", "skeletonkey-resolve-")
	return &site{base: base, opts: opts, tmp: tmp}, err
}

func (s *site) close() { _ = os.RemoveAll(s.tmp) }

// url is the address of a file in the directory, a path where it is local.
func (s *site) url(file string) string {
	if s.base.Scheme == "file" {
		return s.base.Path + file
	}
	u := *s.base
	u.Path, u.RawPath = u.Path+file, ""
	return u.String()
}

// get returns a small file of the directory, "" for the listing.
func (s *site) get(ctx context.Context, file string) ([]byte, error) {
	opts := s.opts.Fetch
	opts.SHA256, opts.MaxSize, opts.Mode, opts.Progress = "", maxMetadata, 0o600, nil
	dest := filepath.Join(s.tmp, "file")
	if _, err := Fetch(ctx, s.url(file), dest, opts); err != nil {
		return nil, err
	}
	return os.ReadFile(dest)
}

// missing reports whether an error says that there is no such file; object stores
// say 403 where a listing is not allowed.
func missing(err error) bool {
	var fe *FetchError
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	return errors.As(err, &fe) && (fe.Status == http.StatusNotFound || fe.Status == http.StatusGone || fe.Status == http.StatusForbidden)
}

// releases returns what there is of name.
func (s *site) releases(ctx context.Context, name string) ([]Release, error) {
	if !s.opts.Key.IsZero() {
		all, err := s.signedSums(ctx)
		return fromSums(all, name), err
	}
	text, err := s.get(ctx, IndexFile)
	if err == nil {
		return fromIndex(text, name)
	}
	if !missing(err) {
		return nil, err
	}
	return s.listed(ctx, name)
}

// signedSums returns the checksums of SHA256SUMS, verified. The two files may be
// just being replaced: a mismatch is looked at again.
func (s *site) signedSums(ctx context.Context) (sums, error) {
	for try := 0; ; try++ {
		text, err := s.get(ctx, SumsFile)
		if err != nil {
			return nil, err
		}
		signature, err := s.get(ctx, SignatureFile)
		if missing(err) {
			return nil, fmt.Errorf("%w: %w", ErrSignature, err)
		}
		if err != nil {
			return nil, err
		}
		if err = s.opts.Key.verify(text, signature, SumsFile); err == nil {
			return parseSums(text)
		}
		if try == 2 || s.base.Scheme == "file" && try == 1 {
			return nil, fmt.Errorf("%s: %w", SignatureFile, err)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

func fromSums(all sums, name string) (list []Release) {
	for file, sum := range all {
		if a, ok := ParseArchiveName(file); ok && a.Name == name {
			list = append(list, Release{Version: a.Version.String(), Platform: a.Platform, File: file, SHA256: sum})
		}
	}
	return list
}

func fromIndex(text []byte, name string) ([]Release, error) {
	var index Index
	if err := json.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", IndexFile, err)
	}
	for _, r := range index[name] {
		if err := checkRelease(name, r); err != nil {
			return nil, fmt.Errorf("%s: %w", IndexFile, err)
		}
	}
	return index[name], nil
}

// listed reads the listing that a web server makes, or the directory itself.
func (s *site) listed(ctx context.Context, name string) (list []Release, err error) {
	var files []string
	if s.base.Scheme == "file" {
		entries, err := os.ReadDir(s.base.Path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			files = append(files, e.Name())
		}
	} else {
		page, err := s.get(ctx, "")
		if err != nil {
			return nil, fmt.Errorf("there is no %s, and no listing of the directory: %w", IndexFile, err)
		}
		files = listedFiles(page, s.base)
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if a, ok := ParseArchiveName(file); ok && a.Name == name {
			list = append(list, Release{Version: a.Version.String(), Platform: a.Platform, File: file})
		}
	}
	return list, nil
}

// checksum looks for a file's checksum where no index tells it: in SHA256SUMS, or
// in FILE.sha256.
func (s *site) checksum(ctx context.Context, file string) (string, error) {
	for _, from := range []string{SumsFile, file + ".sha256"} {
		text, err := s.get(ctx, from)
		if missing(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		all, err := parseSums(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", from, err)
		}
		if all[file] != "" {
			return all[file], nil
		}
	}
	return "", nil
}
