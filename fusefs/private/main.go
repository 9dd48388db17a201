package private

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

// The hidden first arguments by which this program knows what it is.
const (
	innerArg = "private-namespace"
	appArg   = "private-application"
)

// ServeFunc serves the file system m.Config describes at the directory m.Where,
// which exists. It mounts by itself, with mount(2) on /dev/fuse (go-fuse:
// DirectMountStrict; with Plan.NoNamespace by fusermount3), and returns once the
// file system answers. ctx ends when the preparations are given up, otherwise
// after Close; log is relayed to the outer process. The working directory is /,
// the environment the outer's. It must not exec, nor start processes that
// outlive its call. An error that has a method ExitCode() int hands that code on
// to MountError.
type ServeFunc func(ctx context.Context, log *slog.Logger, m Mount) (Server, error)

// Server is a file system that is being served.
type Server interface {
	// Close writes back what is left, unmounts, and waits until all has been
	// answered. It returns an error if any data that the command wrote may
	// not have reached its place, and then Run fails. All processes that used
	// the file system are dead by then. When ctx ends it gives up.
	Close(ctx context.Context) error
}

// IsInner reports whether this process was started by Run: then the program
// must do nothing but os.Exit(private.Main(serve)).
func IsInner() bool {
	return len(os.Args) == 2 && (os.Args[1] == innerArg || os.Args[1] == appArg)
}

// Main is what a process does for which IsInner reports true. It returns the
// process's exit code; whatever it has to say goes to the outer process.
func Main(serve ServeFunc) int {
	if os.Args[1] == appArg {
		return launch()
	}
	in, err := newInner()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: not for use by hand: %v\n", innerArg, err)
		return 2
	}
	return in.main(serve)
}
