package installer

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockFile holds the lock where a directory cannot (NFS).
const lockFile = ".lock"

// lockDir makes the caller the only one that changes dir, once others have ended;
// the lock ends with unlock, or with the process.
func lockDir(ctx context.Context, dir string, log *slog.Logger) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = flock(ctx, f, log)
	if err == unix.EBADF || err == unix.EOPNOTSUPP || err == unix.ENOLCK {
		f.Close()
		f, err = os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return nil, err
		}
		err = flock(ctx, f, log)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

func flock(ctx context.Context, f *os.File, log *slog.Logger) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if err != unix.EWOULDBLOCK {
			return err
		}
		if wait == 10*time.Millisecond && log != nil {
			log.Info("waiting for another process", "lock", f.Name())
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}
