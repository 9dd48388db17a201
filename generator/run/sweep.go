package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sweep removes from base what dead jobs of this user left there. What cannot be
// removed is logged and stays. It stops when ctx ends.
func sweep(ctx context.Context, base string, log *slog.Logger) {
	names, err := readNames(base)
	if err != nil {
		return // chooseBase says what is wrong with it
	}
	prefix := scratchPrefix + strconv.Itoa(os.Geteuid()) + "-"
	for _, name := range names {
		if ctx.Err() != nil {
			return
		}
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		dir := filepath.Join(base, name)
		switch err := sweepOne(dir); {
		case errors.Is(err, errLive):
			log.Debug("not swept", "dir", dir, "reason", err)
		case err != nil:
			log.Warn("what a dead job left cannot be removed", "dir", dir, "error", err)
		default:
			log.Info("swept what a dead job left", "dir", dir)
		}
	}
}

// sweepOne removes one scratch directory if its job is dead, else it returns
// errLive.
func sweepOne(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	if int(st.Uid) != os.Geteuid() {
		return errors.New("it belongs to somebody else")
	}
	const flags = unix.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	fd, err := unix.Openat(int(f.Fd()), lockName(), flags, 0)
	if err == unix.ENOENT {
		return sweepUnlocked(dir)
	}
	if err != nil {
		return fmt.Errorf("open its lock: %w", err)
	}
	lock := os.NewFile(uintptr(fd), lockName())
	defer lock.Close()
	if err := tryLock(lock); err != nil {
		return err
	}
	if err := detachBelow(dir); err != nil {
		return err
	}
	return removeScratch(dir, lock)
}

// sweepUnlocked removes a directory that has no lock of this machine if it is
// empty: its job died at once. Otherwise it is for another machine to sweep. A job
// that was about to lock it takes a new one.
func sweepUnlocked(dir string) error {
	err := unix.Rmdir(dir)
	if err == unix.ENOTEMPTY || err == unix.EEXIST {
		return fmt.Errorf("%w, or another machine's", errLive)
	}
	return err
}
