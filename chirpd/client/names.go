package client

import (
	"context"
	"time"

	"skeletonkey/chirpd/wire"
)

// call is a call on a path.
func (c *Client) call(op, path string, twice replay, r wire.Request) *Call {
	return &Call{op: op, path: path, replay: twice, request: func(int64) wire.Request { return r }}
}

// do runs a call on the connection for paths.
func (c *Client) do(ctx context.Context, k *Call) (int64, error) {
	return c.names.run(ctx, k)
}

// change runs a call that changes something and has no answer but success.
func (c *Client) change(ctx context.Context, path string, r wire.Request) error {
	_, err := c.do(ctx, c.call(r.Command(), path, once, r))
	return err
}

// alone runs a call on a connection of its own, which is given up when ctx ends.
func (c *Client) alone(ctx context.Context, k *Call) (int64, error) {
	l := c.lend()
	defer c.bringBack(l)
	k.slow = slowWork
	if err := ctx.Err(); err != nil {
		k.init(l)
		return 0, k.fail(err)
	}
	n, err := l.start(k).Wait(ctx)
	if err != nil && ctx.Err() != nil {
		if in := l.abandon(k); in != nil {
			in.shut(errCaller)
		}
		<-k.done // its reader or writer is the caller's again
	}
	return n, err
}

func (c *Client) statCall(path string) *Call {
	return c.call("stat", path, pure, &wire.StatPath{Path: path})
}

func (c *Client) lstatCall(path string) *Call {
	return c.call("lstat", path, pure, &wire.Lstat{Path: path})
}

// into makes a stat line the answer to k.
func (k *Call) into(st *wire.Stat) *Call {
	k.read = func(in *conn, _ int64) (err error) {
		*st, err = in.stat()
		return err
	}
	return k
}

// runStat runs a call that is answered by a stat line.
func (l *lane) runStat(ctx context.Context, k *Call) (wire.Stat, error) {
	st := new(wire.Stat)
	if _, err := l.run(ctx, k.into(st)); err != nil {
		return wire.Stat{}, err
	}
	return *st, nil
}

// StartStat starts Stat. st belongs to the call until it is done, and counts when
// it has not failed.
func (c *Client) StartStat(path string, st *wire.Stat) *Call {
	return c.names.start(c.statCall(path).into(st))
}

// StartLstat starts Lstat, as StartStat does Stat.
func (c *Client) StartLstat(path string, st *wire.Stat) *Call {
	return c.names.start(c.lstatCall(path).into(st))
}

// Stat asks for the attributes of what path leads to; links are followed.
func (c *Client) Stat(ctx context.Context, path string) (wire.Stat, error) {
	return c.names.runStat(ctx, c.statCall(path))
}

// Lstat asks for the attributes of path itself, be it a link.
func (c *Client) Lstat(ctx context.Context, path string) (wire.Stat, error) {
	return c.names.runStat(ctx, c.lstatCall(path))
}

// Statfs asks for the space of the file system behind path.
func (c *Client) Statfs(ctx context.Context, path string) (wire.Statfs, error) {
	st := new(wire.Statfs)
	k := c.call("statfs", path, pure, &wire.StatfsPath{Path: path})
	k.read = func(in *conn, _ int64) error {
		line, err := in.text()
		if err != nil {
			return err
		}
		if *st, err = wire.ParseStatfs(line); err != nil {
			return outOfStep("%v", err)
		}
		return nil
	}
	if _, err := c.do(ctx, k); err != nil {
		return wire.Statfs{}, err
	}
	return *st, nil
}

// Access asks whether the caller may do mode (4 read, 2 write, 1 execute, 0: it
// exists) with path; nil means yes.
func (c *Client) Access(ctx context.Context, path string, mode int64) error {
	_, err := c.do(ctx, c.call("access", path, pure, &wire.Access{Path: path, Mode: mode}))
	return err
}

// Unlink removes a file or a link.
func (c *Client) Unlink(ctx context.Context, path string) error {
	return c.change(ctx, path, &wire.Unlink{Path: path})
}

// Rmdir removes an empty directory.
func (c *Client) Rmdir(ctx context.Context, path string) error {
	return c.change(ctx, path, &wire.Rmdir{Path: path})
}

// Rmall removes path and all that is below it.
func (c *Client) Rmall(ctx context.Context, path string) error {
	_, err := c.alone(ctx, c.call("rmall", path, once, &wire.Rmall{Path: path}))
	return err
}

// Mkdir makes a directory.
func (c *Client) Mkdir(ctx context.Context, path string, mode int64) error {
	return c.change(ctx, path, &wire.Mkdir{Path: path, Mode: mode})
}

// Rename moves path to newPath, replacing a file there. Open files are followed.
func (c *Client) Rename(ctx context.Context, path, newPath string) error {
	k := c.call("rename", path, once, &wire.Rename{Path: path, NewPath: newPath})
	c.mu.Lock()
	c.renames++
	c.mu.Unlock()
	k.then = func(_ int64, err error) { c.moved(path, newPath, err) }
	_, err := c.do(ctx, k)
	return err
}

// Link makes newPath another name of the file path.
func (c *Client) Link(ctx context.Context, path, newPath string) error {
	return c.change(ctx, newPath, &wire.Link{Path: path, NewPath: newPath})
}

// Symlink makes newPath a symbolic link with the content target.
func (c *Client) Symlink(ctx context.Context, target, newPath string) error {
	return c.change(ctx, newPath, &wire.Symlink{Target: target, NewPath: newPath})
}

// maxTarget is the longest content of a link on Linux, in bytes.
const maxTarget = 4096

// Readlink returns the content of a symbolic link.
func (c *Client) Readlink(ctx context.Context, path string) (string, error) {
	b, err := c.blob(ctx, c.call("readlink", path, pure, &wire.Readlink{Path: path, Length: maxTarget}), maxTarget)
	return string(b), err
}

// blob runs a call that is answered by a length and so many bytes, at most limit.
func (c *Client) blob(ctx context.Context, k *Call, limit int64) ([]byte, error) {
	read, b := blob(limit)
	k.read = read
	if _, err := c.do(ctx, k); err != nil {
		return nil, err
	}
	return *b, nil
}

func blob(limit int64) (func(in *conn, n int64) error, *[]byte) {
	b := new([]byte)
	return func(in *conn, n int64) (err error) {
		*b, err = in.blob(n, limit)
		return err
	}, b
}

// Chmod sets the permissions of path.
func (c *Client) Chmod(ctx context.Context, path string, mode int64) error {
	return c.change(ctx, path, &wire.Chmod{Path: path, Mode: mode})
}

// Truncate makes the file at path length bytes long.
func (c *Client) Truncate(ctx context.Context, path string, length int64) error {
	k := c.call("truncate", path, once, &wire.Truncate{Path: path, Length: length})
	k.then = func(_ int64, err error) {
		if err == nil {
			c.shrunk(func(f *File) bool { return wire.CleanPath(f.Path()) == wire.CleanPath(path) }, length)
		}
	}
	_, err := c.do(ctx, k)
	return err
}

// Utime sets access and modification times, to the second.
func (c *Client) Utime(ctx context.Context, path string, atime, mtime time.Time) error {
	return c.change(ctx, path, &wire.Utime{Path: path, Actime: atime.Unix(), Mtime: mtime.Unix()})
}

// Localpath asks where path lies on the server's own disk.
func (c *Client) Localpath(ctx context.Context, path string) (string, error) {
	b, err := c.blob(ctx, c.call("localpath", path, pure, &wire.Localpath{Path: path}), maxTarget)
	return string(b), err
}

// Thirdput lets the server send path to newPath on another server, host.
func (c *Client) Thirdput(ctx context.Context, path, host, newPath string) (int64, error) {
	return c.alone(ctx, c.call("thirdput", path, once, &wire.Thirdput{Path: path, Host: host, NewPath: newPath}))
}
