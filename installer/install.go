package installer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// The links in PREFIX/NAME, each to a version's directory beside it.
const (
	currentLink  = "current"
	previousLink = "previous"
)

// InstallOptions says what to install and where.
type InstallOptions struct {
	// Prefix is the directory of all software; it is made if need be.
	Prefix string
	// From is where the release is published, see Resolve.
	From string
	// Version and Platform are those of Resolve.
	Version, Platform string
	// Resolve says how to find and fetch it.
	Resolve ResolveOptions
	// NoChecksum lets a release be installed whose checksum nothing tells.
	NoChecksum bool
	// Progress, if not nil, is FetchOptions.Progress of the archive.
	Progress func(done, total int64)
	// Log is told what is done. Default: none.
	Log *slog.Logger

	// step is told before each step that changes something; for tests.
	step func(string)
}

// Installed is a name's state under a prefix.
type Installed struct {
	Name     string   `json:"name"`
	Path     string   `json:"path"`               // of the link to the version in use
	Version  string   `json:"version"`            // in use
	Previous string   `json:"previous,omitempty"` // that Rollback goes back to
	Versions []string `json:"versions"`           // that are there, newest first
	Changed  bool     `json:"changed"`            // the version in use is another than before the call
}

// Install puts a release into PREFIX/NAME/VERSION and makes PREFIX/NAME/current a
// link to it, each in one step and only when all of it is there, verified. The
// version in use before stays, for Rollback; older ones are removed. Another
// Install or Rollback of the same name is waited for. What is asked for as the
// latest never takes the place of a newer version. On error, also on a kill, the
// version in use is the one before; the next call removes what was left.
func Install(ctx context.Context, name string, opts InstallOptions) (Installed, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	r, err := Resolve(ctx, opts.From, name, opts.Version, opts.Platform, opts.Resolve)
	if err != nil {
		return Installed{}, fmt.Errorf("install %s: %w", name, err)
	}
	fail := func(err error) (Installed, error) {
		return Installed{}, fmt.Errorf("install %s %s: %w", name, r.Version, err)
	}
	if r.SHA256 == "" && !opts.NoChecksum {
		return fail(fmt.Errorf("nothing tells the checksum of %s: neither %s nor %s nor %s.sha256; ask for it without one if you trust the way",
			r.URL, IndexFile, SumsFile, r.File))
	}
	home, unlock, err := openHome(ctx, opts.Prefix, name, opts.Log)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if opts.step != nil {
		home.step = opts.step
	}
	if err := home.install(ctx, r, opts); err != nil {
		return fail(err)
	}
	now, err := home.state()
	now.Changed = now.Version != home.was
	return now, err
}

// Rollback makes the version before the one in use again; called twice it comes
// back.
func Rollback(ctx context.Context, prefix, name string) (Installed, error) {
	fail := func(err error) (Installed, error) { return Installed{}, fmt.Errorf("roll back %s: %w", name, err) }
	if !releaseName.MatchString(name) {
		return fail(errors.New("that is no name of a release"))
	}
	if _, err := os.Stat(filepath.Join(prefix, name)); err != nil {
		return fail(err)
	}
	home, unlock, err := openHome(ctx, prefix, name, nil)
	if err != nil {
		return fail(err)
	}
	defer unlock()
	previous := home.link(previousLink)
	if previous == "" || previous == home.was {
		return fail(fmt.Errorf("no version before %q is there", home.was))
	}
	if err := home.use(previous); err != nil {
		return fail(err)
	}
	now, err := home.state()
	now.Changed = true
	return now, err
}

// List returns what is installed under prefix, by name; a prefix that is not there
// holds nothing.
func List(prefix string) ([]Installed, error) {
	prefix, err := filepath.Abs(prefix)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(prefix)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Installed
	for _, e := range entries {
		h := home{dir: filepath.Join(prefix, e.Name()), name: e.Name()}
		if !e.IsDir() || h.link(currentLink) == "" {
			continue
		}
		now, err := h.state()
		if err != nil {
			return nil, err
		}
		all = append(all, now)
	}
	return all, nil
}

// install brings r and switches to it. The caller holds the lock.
func (h *home) install(ctx context.Context, r Release, opts InstallOptions) error {
	asked, _ := ParseVersion(r.Version) // Resolve's is one
	inUse, known := ParseVersion(h.was)
	if known && (opts.Version == "" || opts.Version == Latest) && inUse.Compare(asked) > 0 {
		opts.Log.Warn("a newer version is in use and stays; ask for the older one by its number",
			"name", h.name, "in use", h.was, "found", r.Version)
		return nil
	}
	if !h.has(r.Version) {
		if err := h.bring(ctx, r, opts); err != nil {
			return err
		}
	}
	h.step("switch")
	if h.was != r.Version {
		if err := h.use(r.Version); err != nil {
			return err
		}
	}
	h.step("clean")
	return h.clean()
}

// bring fetches and unpacks r to its place.
func (h *home) bring(ctx context.Context, r Release, opts InstallOptions) error {
	tmp, err := os.MkdirTemp(h.dir, tempPattern(r.Version))
	if err != nil {
		return err
	}
	defer func() { _ = RemoveTree(tmp) }() // what it cannot remove the next call sweeps
	archive, tree := filepath.Join(tmp, "archive"), filepath.Join(tmp, "tree")
	fetch := opts.Resolve.Fetch
	fetch.SHA256, fetch.Progress, fetch.Mode, fetch.MaxSize = r.SHA256, opts.Progress, 0o600, r.Size
	h.step("fetch")
	opts.Log.Info("fetching", "url", r.URL)
	if _, err := Fetch(ctx, r.URL, archive, fetch); err != nil {
		return err
	}
	h.step("unpack")
	if _, err := UnpackTo(ctx, archive, tree, UnpackOptions{NoSync: true}); err != nil {
		return err
	}
	top, err := treeTop(tree, r.Name)
	if err != nil {
		return err
	}
	// A directory that we may not write into cannot be moved either.
	if err := makeWritable(top); err != nil {
		return err
	}
	h.step("publish")
	return Publish(top, filepath.Join(h.dir, r.Version))
}

func makeWritable(dir string) error {
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm()&0o200 != 0 {
		return err
	}
	return os.Chmod(dir, st.Mode().Perm()|0o200)
}

// treeTop returns the only directory at the top of tree when it is named after
// the release, NAME or NAME-..., else tree.
func treeTop(tree, name string) (string, error) {
	entries, err := os.ReadDir(tree)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		if top := entries[0].Name(); top == name || strings.HasPrefix(top, name+"-") {
			return filepath.Join(tree, top), nil
		}
	}
	return tree, nil
}
