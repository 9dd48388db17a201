package installer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// Index is the content of index.json: the releases of each name, newest first.
type Index map[string][]Release

// Release is one archive of a version of some software.
type Release struct {
	Name     string `json:"-"`
	Version  string `json:"version"`
	Platform string `json:"platform,omitempty"` // OS-ARCH as Go names them, "" for any
	File     string `json:"file"`               // name in the directory
	SHA256   string `json:"sha256,omitempty"`   // 64 lower case hexadecimal digits, "" if not known
	Size     int64  `json:"size,omitempty"`     // bytes, 0 if not known

	URL    string `json:"-"` // where Resolve found it
	Signed bool   `json:"-"` // the checksum was signed by the key that Resolve was given
}

// RepositoryOptions says how to publish.
type RepositoryOptions struct {
	// Add are archives to be copied into the directory first; each is whole there,
	// or not there.
	Add []string
	// Key signs SHA256SUMS. A directory that is signed needs it.
	Key PrivateKey
	// Sign tells that Key is set.
	Sign bool
	// Replace lets an archive that was published have another content.
	Replace bool
	// Log is told what is left out. Default: none.
	Log *slog.Logger
}

// UpdateRepository makes dir, which must exist, a directory of releases that any
// static web server can serve: it writes SHA256SUMS, its signature and index.json
// for the archives that are there, each by one rename and only if it changes. A new
// archive must be one that Unpack takes; one that was published before must be
// unchanged, since a version is known by its content. A reader that comes in
// between finds old and new files, each whole, and Resolve looks again.
func UpdateRepository(ctx context.Context, dir string, opts RepositoryOptions) (Index, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	unlock, err := lockDir(ctx, dir, opts.Log)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", dir, err)
	}
	defer unlock()
	index, err := updateRepository(ctx, dir, opts)
	if err != nil {
		return nil, fmt.Errorf("publish %s: %w", dir, err)
	}
	return index, nil
}

func updateRepository(ctx context.Context, dir string, opts RepositoryOptions) (Index, error) {
	if !opts.Sign {
		if err := checkUnsigned(dir); err != nil {
			return nil, errors.New("its checksums are signed: give the key")
		}
	}
	old, err := readSums(dir)
	if err != nil {
		return nil, err
	}
	for _, file := range opts.Add {
		if err := addArchive(ctx, dir, file, old, opts); err != nil {
			return nil, err
		}
	}
	found, sizes, err := hashArchives(ctx, dir, old, opts)
	if err != nil {
		return nil, err
	}
	index, err := newIndex(found, sizes, opts.Log)
	if err != nil {
		return nil, err
	}
	return index, writeRepository(dir, found, index, opts)
}

// addArchive copies an archive into dir.
func addArchive(ctx context.Context, dir, file string, old sums, opts RepositoryOptions) error {
	name := filepath.Base(file)
	if _, ok := ParseArchiveName(name); !ok {
		return fmt.Errorf("%s is not named NAME-VERSION.tar.zst or NAME-VERSION-OS-ARCH.tar.zst (or .gz, .xz, .tar)", name)
	}
	dest := filepath.Join(dir, name)
	if same, err := sameFile(file, dest); err != nil || same {
		return err
	}
	sum, _, err := hashFile(ctx, file)
	if err != nil {
		return err
	}
	if err := checkSame(name, sum, old, opts); err != nil {
		return err
	}
	if here, _, err := hashFile(ctx, dest); err == nil && here == sum {
		return nil
	}
	if _, err := CheckArchive(ctx, file, UnpackOptions{}); err != nil {
		return err
	}
	_, err = Fetch(ctx, file, dest, FetchOptions{SHA256: sum})
	return err
}

func sameFile(a, b string) (bool, error) {
	x, err := os.Stat(a)
	if err != nil {
		return false, err
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y), nil
}

func checkSame(name, sum string, old sums, opts RepositoryOptions) error {
	if was := old[name]; was != "" && was != sum && !opts.Replace {
		return fmt.Errorf("%s was published with other content (SHA-256 %s, now %s): give it a new version, or say that it may be replaced",
			name, was, sum)
	}
	return nil
}

// hashArchives returns the checksums and sizes of all archives in dir; new ones
// are checked.
func hashArchives(ctx context.Context, dir string, old sums, opts RepositoryOptions) (sums, map[string]int64, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	found, sizes := sums{}, map[string]int64{}
	for _, e := range entries {
		name := e.Name()
		if !e.Type().IsRegular() || name[0] == '.' || !archiveEnd.MatchString(name) {
			continue
		}
		if !plainName(name) {
			opts.Log.Warn("left out: no name for a checksum file", "file", name)
			continue
		}
		path := filepath.Join(dir, name)
		sum, size, err := hashFile(ctx, path)
		if err == nil {
			err = checkSame(name, sum, old, opts)
		}
		if err == nil && old[name] != sum {
			_, err = CheckArchive(ctx, path, UnpackOptions{})
		}
		if err != nil {
			return nil, nil, err
		}
		found[name], sizes[name] = sum, size
	}
	return found, sizes, nil
}

// newIndex sorts the archives by name and version.
func newIndex(found sums, sizes map[string]int64, log *slog.Logger) (Index, error) {
	index := Index{}
	for file, sum := range found {
		a, ok := ParseArchiveName(file)
		if !ok {
			log.Warn("not in the index: not named NAME-VERSION", "file", file)
			continue
		}
		r := Release{Name: a.Name, Version: a.Version.String(), Platform: a.Platform, File: file, SHA256: sum, Size: sizes[file]}
		for _, other := range index[a.Name] {
			v, _ := ParseVersion(other.Version) // came from ParseArchiveName
			if v.Compare(a.Version) == 0 && other.Platform == r.Platform {
				return nil, fmt.Errorf("%s and %s are the same version: remove one", min(file, other.File), max(file, other.File))
			}
		}
		index[a.Name] = append(index[a.Name], r)
	}
	for _, list := range index {
		slices.SortFunc(list, func(a, b Release) int { return -compareReleases(a, b) })
	}
	return index, nil
}

// compareReleases orders by version, then so that the order is always the same.
func compareReleases(a, b Release) int {
	v, _ := ParseVersion(a.Version)
	w, _ := ParseVersion(b.Version)
	if c := v.Compare(w); c != 0 {
		return c
	}
	return -bytes.Compare([]byte(a.File), []byte(b.File))
}

// writeRepository writes the three files, the index last.
func writeRepository(dir string, found sums, index Index, opts RepositoryOptions) error {
	text := found.text()
	if err := writeChanged(dir, SumsFile, text); err != nil {
		return err
	}
	if opts.Sign {
		if err := writeChanged(dir, SignatureFile, opts.Key.sign(text, SumsFile)); err != nil {
			return err
		}
	}
	content, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return err
	}
	return writeChanged(dir, IndexFile, append(content, '\n'))
}

// checkRelease refuses what an index of a stranger must not say.
func checkRelease(name string, r Release) error {
	if _, ok := ParseVersion(r.Version); !ok {
		return fmt.Errorf("%s of %s has no version, but %q", r.File, name, r.Version)
	}
	if !plainName(r.File) || !fs.ValidPath(r.File) || checkDigest(r.SHA256) != nil || r.Size < 0 {
		return fmt.Errorf("the entry of %s %s is not that of a file", name, r.Version)
	}
	return nil
}
