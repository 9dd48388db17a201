package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// streamPiece is how much of standard input is sent at a time, in bytes.
const streamPiece = 4 << 20

func (a *app) putCommand() *cobra.Command {
	var c connection
	var recursive bool
	cmd := &cobra.Command{
		Use: "put LOCAL URL", Short: "Copy files to a server", Args: cobra.ExactArgs(2),
		Long: `Put copies a file to a server; - is standard input. Where the URL is a directory
the file goes into it. Other clients see the old file until the new one is whole.`,
		Example: `  skeletonkey put results.csv chirp://data:9094/results/
  tar cf - . | skeletonkey put - chirp://data:9094/backup.tar
  skeletonkey put -r ./records chirp://data:9094/`,
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "copy directories with all that is in them")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, remote, err := s.at(args[1])
		if err != nil {
			return err
		}
		if args[0] == "-" {
			if st, err := server.Stat(cmd.Context(), remote); err == nil && st.IsDir() {
				return usageError{fmt.Errorf("%s is a directory; standard input has no name, so give one in it", args[1])}
			}
			in, err := untilDone(cmd.Context(), a.in)
			if err != nil {
				return err
			}
			defer in.close()
			return putStream(cmd.Context(), server, remote, in)
		}
		remote, err = intoDirectory(cmd.Context(), server, remote, args[1], filepath.Base(args[0]))
		if err != nil {
			return err
		}
		return a.put(cmd.Context(), server, args[0], remote, recursive)
	})
	return cmd
}

func (a *app) put(ctx context.Context, server *client.Client, local, remote string, recursive bool) error {
	info, err := os.Stat(local)
	if err != nil {
		return err
	}
	if info.IsDir() && !recursive {
		return usageError{fmt.Errorf("%s is a directory; give -r to copy it whole", local)}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transfers)
	p := &putter{server: server, group: group, progress: a.progress()}
	defer p.progress.end()
	if info.IsDir() {
		err = p.directory(ctx, local, remote)
	} else {
		p.file(ctx, local, remote, info)
	}
	return finish(err, p.left, group)
}

// putter copies local files to a server.
type putter struct {
	server   *client.Client
	group    *errgroup.Group
	progress *progress
	left     []error // what was left out; only the walk adds to it
}

func (p *putter) directory(ctx context.Context, local, remote string) error {
	if err := p.server.Mkdir(ctx, remote, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	entries, err := os.ReadDir(local)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := p.entry(ctx, e, filepath.Join(local, e.Name()), path.Join(remote, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (p *putter) entry(ctx context.Context, e fs.DirEntry, local, remote string) error {
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case info.IsDir():
		return p.directory(ctx, local, remote)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(local)
		if err != nil {
			return err
		}
		return p.link(ctx, target, remote)
	case info.Mode().IsRegular():
		p.file(ctx, local, remote, info)
		return nil
	}
	p.left = append(p.left, leftOut(local))
	return nil
}

// link makes the symbolic link, in place of one that is there.
func (p *putter) link(ctx context.Context, target, remote string) error {
	err := p.server.Symlink(ctx, target, remote)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if old, lookErr := p.server.Readlink(ctx, remote); lookErr == nil && old == target {
		return nil
	}
	return err
}

func (p *putter) file(ctx context.Context, local, remote string, info fs.FileInfo) {
	p.progress.add(info.Size())
	p.group.Go(func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		f, err := os.Open(local)
		if err != nil {
			return err
		}
		defer f.Close()
		now, err := f.Stat() // the size that counts is that of what was opened
		if err != nil {
			return err
		}
		if !now.Mode().IsRegular() {
			return putStream(ctx, p.server, remote, f)
		}
		return p.server.Putfile(ctx, remote, int64(now.Mode().Perm()), now.Size(), p.progress.reader(f))
	})
}

// putStream writes what has no size beforehand to a temporary name, and renames
// it when it is whole and on disk.
func putStream(ctx context.Context, server *client.Client, remote string, in io.Reader) (err error) {
	temp := remote + ".part-" + rand.Text()
	f, err := server.Open(ctx, temp, wire.OpenWrite|wire.OpenCreate|wire.OpenExclude, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = server.Unlink(context.WithoutCancel(ctx), temp) // err tells already that it went wrong
		}
	}()
	if err := copyStream(ctx, f, in); err != nil {
		_ = f.Close(ctx)
		return err
	}
	if err := errors.Join(f.Fsync(ctx), f.Close(ctx)); err != nil {
		return err
	}
	return server.Rename(ctx, temp, remote)
}

func copyStream(ctx context.Context, f *client.File, in io.Reader) error {
	buf := make([]byte, streamPiece)
	for offset := int64(0); ; {
		n, readErr := io.ReadFull(in, buf)
		for sent := 0; sent < n; {
			k, err := f.Pwrite(ctx, buf[sent:n], offset)
			if err != nil {
				return err
			}
			sent += k
			offset += int64(k)
		}
		switch {
		case errors.Is(readErr, io.EOF), errors.Is(readErr, io.ErrUnexpectedEOF):
			return nil
		case readErr != nil:
			return readErr
		}
	}
}
