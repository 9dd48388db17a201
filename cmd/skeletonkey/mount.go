package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spf13/cobra"

	"skeletonkey/chirpd/client"
	"skeletonkey/fusefs"
	"skeletonkey/generator/job"
)

// mountTimeout bounds the wait for the server's first answer: a mount of a server
// that is not there should say so soon. closeTimeout bounds the writing back of
// what is left when a mount is told to stop.
const (
	mountTimeout = time.Minute
	closeTimeout = 2 * time.Minute
)

// mountFlags is what the flags of mount say.
type mountFlags struct {
	connection
	readOnly, daemon, allowOther bool
	readyFD                      int
}

func (a *app) mountCommand() *cobra.Command {
	var m mountFlags
	cmd := &cobra.Command{
		Use: "mount URL MOUNTPOINT", Short: "Show a directory of a server as a file system", Args: cobra.ExactArgs(2),
		Long: `Mount shows a server's directory at MOUNTPOINT, an existing directory: as root
directly, else with fusermount3. It runs until it is unmounted or told to stop,
and writes back what is left before it ends. Files are shown as yours.

Where neither root nor fusermount3 is to be had, "skeletonkey exec" runs a command
with servers mounted in a private namespace.`,
		Example: `  skeletonkey mount chirp://data:9094/ ~/data
  skeletonkey mount --daemon --read-only chirp://data:9094/software ~/software
  skeletonkey umount ~/data`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if m.daemon {
				return a.mountInBackground(cmd.Context())
			}
			return a.mount(cmd.Context(), m, args[0], args[1])
		},
	}
	m.addFlags(cmd, client.DefaultTimeout)
	f := cmd.Flags()
	f.BoolVar(&m.readOnly, "read-only", false, "refuse every change")
	f.BoolVar(&m.daemon, "daemon", false, "return when the mount is ready, and serve it in the background")
	f.BoolVar(&m.allowOther, "allow-other", false, "let other users in, with your rights")
	f.IntVar(&m.readyFD, "ready-fd", -1, "descriptor on which to say that the mount is ready")
	_ = f.MarkHidden("ready-fd") // fails only for a flag that does not exist
	return cmd
}

// mount serves until it is unmounted, or ctx ends.
func (a *app) mount(ctx context.Context, m mountFlags, url, mountpoint string) error {
	if err := notMounted(mountpoint); err != nil {
		return err
	}
	held := make(chan os.Signal, 1) // the first signal lets go of the others, which must not end the writing back
	signal.Notify(held, stopSignals...)
	defer signal.Stop(held)
	s := a.servers(m.connection)
	defer s.close()
	server, path, err := s.at(url)
	if err != nil {
		return err
	}
	export, err := fusefs.New(server, fusefs.Options{Path: path, ReadOnly: m.readOnly, Log: a.log})
	if err != nil {
		return err
	}
	starting, cancel := context.WithTimeout(ctx, mountTimeout)
	mounted, err := fusefs.Mount(starting, export, mountpoint, fusefs.MountOptions{AllowOther: m.allowOther})
	cancel()
	var noWay *fusefs.NoWayError
	if errors.As(err, &noWay) {
		return exitError{job.ExitNoMount, err}
	}
	if err != nil {
		return err
	}
	if err := tellReady(m.readyFD); err != nil {
		return errors.Join(err, mounted.Unmount(ctx))
	}
	if err := a.untilUnmounted(ctx, mounted); err != nil {
		return exitError{job.ExitNotWritten, err}
	}
	return nil
}

// untilUnmounted waits for the end of the mount. The first signal has everything
// written back first; a second one does not wait for that.
func (a *app) untilUnmounted(ctx context.Context, mounted *fusefs.Mounted) error {
	gone := make(chan error, 1)
	go func() { gone <- mounted.Wait() }() // ends with the mount, or with this process
	select {
	case err := <-gone:
		return err
	case <-ctx.Done():
	}
	again, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	again, cancel := context.WithTimeout(again, closeTimeout)
	defer cancel()
	err := mounted.Close(again)
	if again.Err() != nil { // given up: who still has files open there decides when the mount goes
		return err
	}
	return errors.Join(err, <-gone)
}

// mountInBackground runs this same command line without --daemon.
func (a *app) mountInBackground(ctx context.Context) error {
	argv := slices.Clone(os.Args)
	end := slices.Index(argv, "--") // what follows it is no flag
	if end < 0 {
		end = len(argv)
	}
	return a.inBackground(ctx, "mount", slices.Insert(argv, end, "--daemon=false", "--ready-fd=3"))
}

// notMounted refuses a place where a mount of this program is: a second one would
// hide it, not replace it. It does not look into a mount, which may be dead.
func notMounted(mountpoint string) error {
	place, err := filepath.Abs(mountpoint)
	if err != nil {
		return err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(place)); err == nil {
		place = filepath.Join(dir, filepath.Base(place))
	}
	found, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(place))
	if err != nil {
		return err
	}
	for _, m := range found {
		if m.FSType == "fuse.skeletonkey" {
			return fmt.Errorf("%s is a mount already, of %s; to replace it: skeletonkey umount %s", mountpoint, m.Source, mountpoint)
		}
	}
	return nil
}

func (a *app) umountCommand() *cobra.Command {
	return &cobra.Command{
		Use: "umount MOUNTPOINT...", Short: "Remove a mount", Args: cobra.MinimumNArgs(1),
		Long: `Umount removes mounts of this program, also when their server or their process is
dead. Who has files open there may go on with them.`,
		Example: "  skeletonkey umount ~/data",
		RunE:    func(_ *cobra.Command, args []string) error { return each(args, fusefs.Unmount) },
	}
}
