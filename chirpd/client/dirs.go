package client

import (
	"context"
	"syscall"

	"skeletonkey/chirpd/wire"
)

// DirEntry is a name in a directory with its attributes; a link's own, where it is
// one.
type DirEntry struct {
	Name string
	wire.Stat
}

// Getdir lists the names in a directory, in the server's order; `.` and `..` are
// among them where the server lists them.
func (c *Client) Getdir(ctx context.Context, path string) ([]string, error) {
	var names []string
	k := c.call("getdir", path, pure, &wire.Getdir{Path: path})
	k.read = func(in *conn, _ int64) error {
		names = nil
		return in.lines(func(line []byte) error {
			names = append(names, string(line))
			return nil
		})
	}
	if _, err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return names, nil
}

// lines reads lines up to an empty one.
func (c *conn) lines(each func(line []byte) error) error {
	for {
		line, err := c.text()
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		if err := each(line); err != nil {
			return err
		}
	}
}

// Getlongdir lists a directory with attributes, one round trip; `.` and `..` are
// among them where the server lists them.
func (c *Client) Getlongdir(ctx context.Context, path string) ([]DirEntry, error) {
	var entries []DirEntry
	k := c.call("getlongdir", path, pure, &wire.Getlongdir{Path: path})
	k.read = func(in *conn, _ int64) error {
		entries = nil
		return in.entries(func(e DirEntry) error {
			entries = append(entries, e)
			return nil
		})
	}
	if _, err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return entries, nil
}

// ReadDir lists a directory as Getlongdir does, and hands on each entry as it comes,
// on a connection of its own: each may take its time. It ends with the first error
// of each, which it returns. Once an entry was handed on, a lost connection is an
// error.
func (c *Client) ReadDir(ctx context.Context, path string, each func(DirEntry) error) error {
	k := c.call("getlongdir", path, pure, &wire.Getlongdir{Path: path})
	k.read = func(in *conn, _ int64) error {
		return in.entries(func(e DirEntry) error {
			k.replay = once
			k.outside.Store(true)
			defer k.outside.Store(false)
			if err := each(e); err != nil {
				return &dropped{err}
			}
			return nil
		})
	}
	_, err := c.alone(ctx, k)
	return err
}

// entries reads lines of names and attributes in turn, up to an empty one. A line
// that should be attributes and is not is the rest of a name that holds a LF.
func (c *conn) entries(each func(DirEntry) error) error {
	name, named := "", false
	return c.lines(func(line []byte) error {
		if !named {
			name, named = string(line), true
			return nil
		}
		st, err := wire.ParseStat(line)
		if err != nil {
			name += "\n" + string(line)
			if len(name) > syscall.NAME_MAX {
				return outOfStep("%.80q where attributes of a file belong", line)
			}
			return nil
		}
		named = false
		return each(DirEntry{name, st})
	})
}
