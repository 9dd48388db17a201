package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// fileCommands are the commands on files of a server, in the order of the help.
func (a *app) fileCommands() []*cobra.Command {
	return []*cobra.Command{
		a.lsCommand(), a.statCommand(), a.catCommand(), a.getCommand(), a.putCommand(), a.mvCommand(), a.rmCommand(),
		a.mkdirCommand(), a.lnCommand(), a.dfCommand(), a.hashCommand(), a.whoamiCommand(),
	}
}

func (a *app) mvCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "mv URL NEWURL", Short: "Rename a file or directory on a server", Args: cobra.ExactArgs(2),
		Long: `Mv renames within one server, in one step: the new name is the old file or the
new one, never a mix. Where NEWURL is a directory, the file goes into it.`,
		Example: "  skeletonkey mv chirp://data:9094/new.csv chirp://data:9094/archive/",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		from, oldPath, err := s.at(args[0])
		if err != nil {
			return err
		}
		to, newPath, err := s.at(args[1])
		if err != nil {
			return err
		}
		if from != to {
			return usageError{errors.New("mv works within one server; use get and put between two")}
		}
		newPath, err = intoDirectory(cmd.Context(), to, newPath, args[1], path.Base(oldPath))
		if err != nil {
			return err
		}
		return from.Rename(cmd.Context(), oldPath, newPath)
	})
	return cmd
}

// intoDirectory adds name to target when that is a directory, or is written as
// one.
func intoDirectory(ctx context.Context, c *client.Client, target, written, name string) (string, error) {
	st, err := c.Stat(ctx, target)
	switch {
	case err == nil && st.IsDir():
		return path.Join(target, name), nil
	case strings.HasSuffix(written, "/") && (err == nil || errors.Is(err, fs.ErrNotExist)):
		return "", fmt.Errorf("%s is not a directory", written)
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return target, nil
	}
	return "", err
}

func (a *app) rmCommand() *cobra.Command {
	var c connection
	var recursive, force bool
	cmd := &cobra.Command{
		Use: "rm URL...", Short: "Remove files or directories on a server", Args: cobra.MinimumNArgs(1),
		Example: `  skeletonkey rm chirp://data:9094/old.csv
  skeletonkey rm -r chirp://data:9094/results/run1`,
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "remove directories with all that is in them")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "a file that is not there is no error")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		return s.each(args, func(server *client.Client, p, url string) error {
			if p == "/" {
				return usageError{fmt.Errorf("%s is the whole export, which rm does not remove; name what is in it", url)}
			}
			remove := server.Unlink
			if recursive {
				remove = server.Rmall
			}
			err := remove(cmd.Context(), p)
			switch {
			case force && errors.Is(err, fs.ErrNotExist):
				return nil
			case !recursive && errors.Is(err, wire.IsDir):
				return fmt.Errorf("%w; give -r to remove it with all that is in it", err)
			}
			return err
		})
	})
	return cmd
}

func (a *app) mkdirCommand() *cobra.Command {
	var c connection
	var parents bool
	cmd := &cobra.Command{
		Use: "mkdir URL...", Short: "Make directories on a server", Args: cobra.MinimumNArgs(1),
		Example: "  skeletonkey mkdir -p chirp://data:9094/results/2026/run1",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVarP(&parents, "parents", "p", false, "make parents too; a directory that is there is no error")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		return s.each(args, func(server *client.Client, p, url string) error {
			if parents {
				return mkdirAll(cmd.Context(), server, p)
			}
			return server.Mkdir(cmd.Context(), p, 0o777)
		})
	})
	return cmd
}

// mkdirAll makes the directory p and those above it that are missing.
func mkdirAll(ctx context.Context, c *client.Client, p string) error {
	st, err := c.Stat(ctx, p)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%s exists and is not a directory", p)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := mkdirAll(ctx, c, path.Dir(p)); err != nil {
		return err
	}
	if err := c.Mkdir(ctx, p, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (a *app) lnCommand() *cobra.Command {
	var c connection
	var symbolic bool
	cmd := &cobra.Command{
		Use: "ln [-s] TARGET URL", Short: "Make a link on a server", Args: cobra.ExactArgs(2),
		Long: `Ln makes URL another name of the file TARGET, a URL on the same server. With -s
it makes a symbolic link that holds the text TARGET; on the server an absolute
target counts from the root of the export.`,
		Example: "  skeletonkey ln -s run7 chirp://data:9094/results/latest",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVarP(&symbolic, "symbolic", "s", false, "make a symbolic link")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, p, err := s.at(args[1])
		if err != nil {
			return err
		}
		if symbolic {
			return server.Symlink(cmd.Context(), args[0], p)
		}
		target, old, err := s.at(args[0])
		if err != nil {
			return err
		}
		if target != server {
			return usageError{errors.New("ln needs both names on one server")}
		}
		return server.Link(cmd.Context(), old, p)
	})
	return cmd
}

// each does the work for all arguments and reports all that failed.
func each(args []string, work func(string) error) error {
	var failed []error
	for _, arg := range args {
		failed = append(failed, work(arg))
	}
	return errors.Join(failed...)
}
