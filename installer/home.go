package installer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// home is PREFIX/NAME: a directory for each version, and the links. Only what is
// named as a version, and temporary names, are ever removed from it.
type home struct {
	dir, name string
	was       string // the version in use when it was opened, "" for none
	step      func(string)
}

// openHome makes and locks PREFIX/NAME.
func openHome(ctx context.Context, prefix, name string, log *slog.Logger) (*home, func(), error) {
	if prefix == "" {
		return nil, nil, errors.New("no prefix was given")
	}
	prefix, err := filepath.Abs(prefix)
	if err != nil {
		return nil, nil, err
	}
	h := &home{dir: filepath.Join(prefix, name), name: name, step: func(string) {}}
	if err := os.MkdirAll(h.dir, 0o777); err != nil {
		return nil, nil, err
	}
	unlock, err := lockDir(ctx, h.dir, log)
	if err != nil {
		return nil, nil, err
	}
	if err := h.sweep(); err != nil {
		unlock()
		return nil, nil, err
	}
	h.was = h.link(currentLink)
	return h, unlock, nil
}

// link returns the version that a link leads to, "" where it does not.
func (h *home) link(name string) string {
	target, err := os.Readlink(filepath.Join(h.dir, name))
	if err != nil || !h.has(target) {
		return ""
	}
	return target
}

// has reports whether the version is there. Its directory appears whole.
func (h *home) has(version string) bool {
	if _, ok := ParseVersion(version); !ok {
		return false
	}
	st, err := os.Lstat(filepath.Join(h.dir, version))
	return err == nil && st.IsDir()
}

// use makes version the one in use: first the old one becomes the previous, then
// the new one the current, so that a kill in between changes nothing that is used.
func (h *home) use(version string) error {
	if h.was != "" && h.was != version {
		if err := h.setLink(previousLink, h.was); err != nil {
			return err
		}
	}
	h.step("current")
	return h.setLink(currentLink, version)
}

func (h *home) setLink(name, version string) error {
	path := filepath.Join(h.dir, name)
	if st, err := os.Lstat(path); err == nil && st.Mode().Type() != fs.ModeSymlink {
		return fmt.Errorf("%s is in the way: it is not a link", path)
	}
	tmp := filepath.Join(h.dir, "."+name+".part")
	if err := os.Symlink(version, tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return syncDir(h.dir)
}

// versions lists what is there, newest first.
func (h *home) versions() ([]string, error) {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return nil, err
	}
	var all []Version
	for _, e := range entries {
		if v, ok := ParseVersion(e.Name()); ok && e.IsDir() {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b Version) int {
		return cmp.Or(b.Compare(a), strings.Compare(b.text, a.text))
	})
	var names []string
	for _, v := range all {
		names = append(names, v.text)
	}
	return names, nil
}

func (h *home) state() (Installed, error) {
	all, err := h.versions()
	now := Installed{
		Name: h.name, Path: filepath.Join(h.dir, currentLink), Versions: all,
		Version: h.link(currentLink), Previous: h.link(previousLink),
	}
	if now.Previous == now.Version {
		now.Previous = ""
	}
	return now, err
}

// clean removes the versions that are neither in use nor the one before. Each gets
// a temporary name first, so that no half version is ever seen.
func (h *home) clean() error {
	all, err := h.versions()
	if err != nil {
		return err
	}
	for _, version := range all {
		if version == h.link(currentLink) || version == h.link(previousLink) {
			continue
		}
		dead := filepath.Join(h.dir, "."+version+".old.part")
		if err := os.Rename(filepath.Join(h.dir, version), dead); err != nil {
			return err
		}
	}
	return h.sweep()
}

// sweep removes temporary names; nobody else uses them while we have the lock.
func (h *home) sweep() error {
	entries, err := os.ReadDir(h.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name[0] == '.' && strings.HasSuffix(name, ".part") {
			if err := RemoveTree(filepath.Join(h.dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}
