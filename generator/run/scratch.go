package run

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// scratchVariables name the places for a scratch directory, best first; then comes
// fallbackBase.
var scratchVariables = []string{"_CONDOR_SCRATCH_DIR", "OSG_WN_TMP", "TMPDIR"}

const fallbackBase = "/tmp"

// The names of scratch directories, without the user's number and random digits.
// Those that were to be preserved have a name of their own: nobody sweeps them.
const (
	scratchPrefix   = "skeletonkey-job-"
	preservedPrefix = "skeletonkey-kept-"
)

// Names inside a scratch directory. The application gets workName; what it does
// there cannot meet ours.
const (
	workName    = "work"    // the application's working directory
	mountName   = "mnt"     // where data is mounted if no namespace is to be had
	archiveName = "archive" // the application as it was fetched
	proxyName   = "x509up"  // the X.509 proxy file
)

// bases lists the existing directories in which a scratch directory may be made,
// with symbolic links resolved, each once.
func bases(env environment) []string {
	var list []string
	for _, name := range append(slices.Clone(scratchVariables), "") {
		dir := fallbackBase
		if name != "" {
			if dir = env.get(name); dir == "" {
				continue
			}
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(abs)
		if err == nil && !slices.Contains(list, real) {
			list = append(list, real)
		}
	}
	return list
}

// chooseBase returns the first of bases that can be used, for programs too if
// executes is set.
func chooseBase(list []string, executes bool, log *slog.Logger) (string, error) {
	var refused []error
	for _, dir := range list {
		err := usable(dir, executes)
		if err == nil {
			return dir, nil
		}
		err = fmt.Errorf("%s: %w", dir, err)
		log.Info("scratch directory refused", "error", err)
		refused = append(refused, err)
	}
	refused = append(refused, errors.New("set TMPDIR to a directory that you can write and that allows programs"))
	return "", fmt.Errorf("no place for a scratch directory: %w", errors.Join(refused...))
}

// usable tells why a directory cannot hold a scratch directory.
func usable(dir string, executes bool) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return unix.ENOTDIR
	}
	if st.Mode().Perm()&0o002 != 0 && st.Mode()&fs.ModeSticky == 0 {
		return errors.New("anybody could exchange what is in it: it is writable by all and not sticky")
	}
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("not writable: %w", err)
	}
	var sfs unix.Statfs_t
	if err := unix.Statfs(dir, &sfs); err != nil {
		return fmt.Errorf("statfs: %w", err)
	}
	if executes && sfs.Flags&unix.ST_NOEXEC != 0 {
		return errors.New("its file system is mounted noexec, so that the application could not run")
	}
	return nil
}

// scratch is the private directory of one job.
type scratch struct {
	dir  string
	lock *os.File // held for as long as the job lives
}

func (s *scratch) work() string    { return filepath.Join(s.dir, workName) }
func (s *scratch) mount() string   { return filepath.Join(s.dir, mountName) }
func (s *scratch) archive() string { return filepath.Join(s.dir, archiveName) }
func (s *scratch) proxy() string   { return filepath.Join(s.dir, proxyName) }

// newScratch makes a private directory in base and locks it. Before, it tells
// announce its name, so that it is removed whatever happens.
func newScratch(base, prefix string, announce func(dir string) error) (*scratch, error) {
	for {
		dir, err := scratchPath(base, prefix)
		if err != nil {
			return nil, err
		}
		if err := announce(dir); err != nil {
			return nil, err
		}
		lock, err := makeLocked(dir)
		if errors.Is(err, errSwept) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, removeScratch(dir, nil))
		}
		s := &scratch{dir, lock}
		if err := os.Mkdir(s.work(), 0o777); err != nil {
			return nil, errors.Join(err, s.remove())
		}
		return s, nil
	}
}

// scratchPath returns a name that nobody has.
func scratchPath(base, prefix string) (string, error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", err
	}
	return filepath.Join(base, prefix+strconv.Itoa(os.Geteuid())+"-"+hex.EncodeToString(random[:])), nil
}

// remove removes the directory, and gives up the lock.
func (s *scratch) remove() error { return removeScratch(s.dir, s.lock) }
