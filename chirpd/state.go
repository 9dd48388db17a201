package chirpd

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"skeletonkey/chirpd/confine"
)

// checkState refuses a state directory that clients could reach: whoever may write there
// could make tickets with anybody's rights. Within an export it has to lie below a
// private name. What cannot be resolved is told by whoever opens it.
func (c *Config) checkState() error {
	state, err := realPath(c.StateDir)
	if c.StateDir == "" || err != nil {
		return nil
	}
	list := c.Exports
	if len(list) == 0 {
		list = []Export{{Dir: c.Root, ReadOnly: c.ReadOnly}}
	}
	for _, e := range list {
		dir, err := realPath(e.Dir)
		if err != nil || e.ReadOnly || c.ReadOnly {
			continue
		}
		rel, err := filepath.Rel(dir, state)
		if err != nil || !filepath.IsLocal(rel) || slices.ContainsFunc(strings.Split(rel, "/"), confine.IsPrivate) {
			continue
		}
		return fmt.Errorf("chirpd: the state directory %s lies in the export %s, where clients could change it; choose another, or one below a name that begins with %s",
			c.StateDir, e.Dir, confine.PrivatePrefix)
	}
	return nil
}

// realPath is a path with its links resolved, as far as it is there.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		above, err := realPath(filepath.Dir(path))
		return filepath.Join(above, filepath.Base(path)), err
	}
	return real, err
}
