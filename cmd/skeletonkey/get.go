package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// transfers is how many files of a directory are under way at a time, so that
// small ones do not wait for a round trip each.
const transfers = 8

func (a *app) getCommand() *cobra.Command {
	var c connection
	var recursive bool
	cmd := &cobra.Command{
		Use: "get URL [LOCAL]", Short: "Copy files from a server", Args: cobra.RangeArgs(1, 2),
		Long: `Get copies a file of a server to LOCAL, a file or directory (default: the
current directory); - is standard output. A file appears under its name when it is
whole, on disk, and not before.`,
		Example: `  skeletonkey get chirp://data:9094/results/climate.svg
  skeletonkey get -r chirp://data:9094/results ./copy`,
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "copy directories with all that is in them")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, remote, err := s.at(args[0])
		if err != nil {
			return err
		}
		local := append(args, ".")[1]
		if local == "-" {
			return cat(cmd, server, remote, a.out)
		}
		return a.get(cmd.Context(), server, remote, local, recursive)
	})
	return cmd
}

func (a *app) get(ctx context.Context, server *client.Client, remote, local string, recursive bool) error {
	st, err := server.Stat(ctx, remote)
	if err != nil {
		return err
	}
	if info, err := os.Stat(local); err == nil && info.IsDir() {
		local = filepath.Join(local, path.Base(remote))
	}
	if st.IsDir() && !recursive {
		return usageError{fmt.Errorf("%s is a directory; give -r to copy it whole", remote)}
	}
	root, err := os.OpenRoot(filepath.Dir(local))
	if err != nil {
		return err
	}
	defer root.Close()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transfers)
	g := &getter{server: server, root: root, group: group, progress: a.progress()}
	defer g.progress.end()
	if st.IsDir() {
		err = g.directory(ctx, remote, filepath.Base(local))
	} else {
		g.file(ctx, remote, filepath.Base(local), st)
	}
	return finish(err, g.left, group)
}

// getter copies from a server into root, and nowhere else, whatever names and
// links the server has.
type getter struct {
	server   *client.Client
	root     *os.Root
	group    *errgroup.Group
	progress *progress
	left     []error // what was left out; only the walk adds to it
}

// finish waits for the copies. Of a walk that ended because a copy failed, only
// the copy's error tells anything.
func finish(walk error, left []error, group *errgroup.Group) error {
	first := group.Wait()
	if first != nil && errors.Is(walk, context.Canceled) {
		walk = nil
	}
	return errors.Join(append(left, walk, first)...)
}

// leftOut is the error for a file that has no content to copy.
func leftOut(name string) error {
	return fmt.Errorf("%s is neither a file, a directory nor a link, and is left out", name)
}

// directory walks the remote directory and starts a copy of each file.
func (g *getter) directory(ctx context.Context, remote, local string) error {
	if err := g.root.Mkdir(local, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := g.server.Getlongdir(ctx, remote)
	if err != nil {
		return err
	}
	for _, e := range entries {
		from, to := path.Join(remote, e.Name), filepath.Join(local, e.Name)
		switch {
		case e.Name == "." || e.Name == "..":
		case strings.Contains(e.Name, "/"):
			err = fmt.Errorf("%s: the server names an entry %q, which no file can have", remote, e.Name)
		case e.IsDir():
			err = g.directory(ctx, from, to)
		case e.IsSymlink():
			err = g.link(ctx, from, to)
		case e.IsRegular():
			g.file(ctx, from, to, e.Stat)
		default:
			g.left = append(g.left, leftOut(from))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (g *getter) link(ctx context.Context, remote, local string) error {
	target, err := g.server.Readlink(ctx, remote)
	if err != nil {
		return err
	}
	if err := g.root.Symlink(target, local); !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := g.root.Remove(local); err != nil {
		return err
	}
	return g.root.Symlink(target, local)
}

// file copies one file beside the others.
func (g *getter) file(ctx context.Context, remote, local string, st wire.Stat) {
	g.progress.add(st.Size)
	g.group.Go(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return g.copyFile(ctx, remote, local, st)
	})
}

// copyFile fills a temporary file and renames it.
func (g *getter) copyFile(ctx context.Context, remote, local string, st wire.Stat) (err error) {
	if info, err := g.root.Stat(local); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s exists and is not a file; remove it first", filepath.Join(g.root.Name(), local))
	}
	temp := filepath.Join(filepath.Dir(local), ".get-"+rand.Text())
	f, err := g.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fs.FileMode(st.Mode&0o777))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = g.root.Remove(temp)
		}
	}()
	if _, err := g.server.Getfile(ctx, remote, g.progress.writer(f)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return g.root.Rename(temp, local)
}
