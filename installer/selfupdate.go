package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceProgram puts the program of a release in the place of the file exe by one
// rename. The release's archive holds it under r.Name: at the top, in bin, or in
// one of both in its only directory. Try, if not nil, is called with the new file's
// path before the rename, and refuses it by an error. On error exe is as it was.
func ReplaceProgram(ctx context.Context, r Release, exe string, fetch FetchOptions, try func(path string) error) error {
	fail := func(err error) error { return fmt.Errorf("replace %s by version %s: %w", exe, r.Version, err) }
	if r.SHA256 == "" {
		return fail(errors.New("nothing tells its checksum"))
	}
	tmp, err := os.MkdirTemp(filepath.Dir(exe), tempPattern(exe))
	if err != nil {
		return fail(err)
	}
	defer func() { _ = RemoveTree(tmp) }() // the program is in its place, or the error is told
	if err := bringProgram(ctx, r, exe, tmp, fetch, try); err != nil {
		return fail(err)
	}
	return nil
}

func bringProgram(ctx context.Context, r Release, exe, tmp string, fetch FetchOptions, try func(string) error) error {
	old, err := os.Stat(exe)
	if err != nil {
		return err
	}
	archive, tree := filepath.Join(tmp, "archive"), filepath.Join(tmp, "tree")
	fetch.SHA256, fetch.Mode, fetch.MaxSize = r.SHA256, 0o600, r.Size
	if _, err := Fetch(ctx, r.URL, archive, fetch); err != nil {
		return err
	}
	if _, err := UnpackTo(ctx, archive, tree, UnpackOptions{NoSync: true}); err != nil {
		return err
	}
	program, err := findProgram(tree, r.Name)
	if err != nil {
		return err
	}
	if err := os.Chmod(program, old.Mode().Perm()|0o100); err != nil {
		return err
	}
	if try != nil {
		if err := try(program); err != nil {
			return err
		}
	}
	return Replace(program, exe)
}

// findProgram returns the program of that name in an unpacked release.
func findProgram(tree, name string) (string, error) {
	top, err := treeTop(tree, name)
	if err != nil {
		return "", err
	}
	for _, dir := range []string{".", "bin"} {
		path := filepath.Join(top, dir, name)
		st, err := os.Lstat(path)
		if err == nil && st.Mode().IsRegular() {
			return path, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("the archive has no program %q", name)
}
