package private

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inChroot is what fails where nothing can keep mounts from showing outside.
const inChroot = "the root directory is no mount point"

// openingFuse is what fails when /dev/fuse is not to be had.
const openingFuse = "open /dev/fuse"

// room is the inside of the mount namespace.
type room struct {
	inPlace bool     // the root is the old one
	ours    []string // the tmpfs that we made: where mount points may be made
	log     *slog.Logger
}

// String says what the root is.
func (r *room) String() string {
	if r.inPlace {
		return "in place"
	}
	return "new"
}

// enter makes the new mount namespace, in which this process already is, a
// place where mounts can be made and do not show outside.
func enter(pid bool, log *slog.Logger) (*room, *failure) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err == unix.EINVAL {
		return nil, &failure{Kind: kindNamespace, Text: inChroot}
	} else if err != nil {
		return nil, failed(kindNamespace, "make the mounts of the new namespace its own", err)
	}
	r := &room{log: log}
	if f := r.newRoot(pid); f != nil {
		return nil, f
	}
	if r.inPlace && pid {
		if f := mountProc(); f != nil {
			return nil, f
		}
	}
	return r, nil
}

// mountProc mounts the /proc of this PID namespace. In a user namespace the
// kernel allows it only where another /proc is to be seen in full.
func mountProc() *failure {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return failed(kindProc, "mount /proc for the PID namespace", err)
	}
	return nil
}

// cover returns a directory that mounts may cover for a moment.
func cover() string {
	for _, dir := range []string{"/tmp", "/var", "/usr", "/etc"} {
		if st, err := os.Lstat(dir); err == nil && st.IsDir() {
			return dir
		}
	}
	return "/proc"
}

// newRoot replaces the root by a tmpfs with all of the old root's entries, or
// leaves all as it is where the kernel does not let us.
func (r *room) newRoot(pid bool) *failure {
	base := cover()
	if err := mountTmpfs(base); err != nil { // then the namespace is of no use
		return failed(kindNamespace, "mount a tmpfs", err)
	}
	old := "/.old-root"
	for exists(old) {
		old += "_"
	}
	if err := os.Mkdir(base+old, 0o700); err != nil {
		return failed(kindOther, "make a directory in the new root", err)
	}
	if err := unix.PivotRoot(base, base+old); err != nil {
		r.log.Info("the root cannot be replaced: mounting in place", "error", err)
		r.inPlace = true
		if err := unix.Unmount(base, unix.MNT_DETACH); err != nil {
			return failed(kindOther, "unmount the new root", err)
		}
		return nil
	}
	if err := os.Chdir("/"); err != nil {
		return failed(kindOther, "enter the new root", err)
	}
	if f := r.populate(old, pid); f != nil {
		return f
	}
	if err := unix.Unmount(old, unix.MNT_DETACH); err != nil {
		return failed(kindOther, "detach the old root", err)
	}
	if err := os.Remove(old); err != nil {
		return failed(kindOther, "remove the old root's place", err)
	}
	r.ours = append(r.ours, "/")
	return nil
}

// populate fills the new root, of a PID namespace with a /proc of its own,
// which must be mounted while the old one is still there.
func (r *room) populate(old string, pid bool) *failure {
	if !pid {
		return r.fill(old, "/", "")
	}
	if f := makeDir("/proc"); f != nil {
		return f
	}
	if f := mountProc(); f != nil {
		return f
	}
	return r.fill(old, "/", "proc")
}

// exists says whether a name is taken.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// mountTmpfs mounts a small tmpfs, for mount points and links.
func mountTmpfs(dir string) error {
	return unix.Mount("skeletonkey", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m")
}

// fill makes every entry of the directory from, except the one named without,
// appear in the directory to. What cannot be bound is left out, as a dead
// mount must not keep a command from running that does not use it.
func (r *room) fill(from, to, without string) *failure {
	entries, err := os.ReadDir(from)
	if err != nil {
		return failed(kindOther, "list "+from, err)
	}
	for _, e := range entries {
		if e.Name() == without {
			continue
		}
		src, dst := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if err := bind(src, dst, e.Type()); err != nil {
			r.log.Warn("left out of the private namespace", "path", dst, "error", err)
		}
	}
	return nil
}

// bind makes src, of type t, appear at dst with all that is mounted below it.
func bind(src, dst string, t fs.FileMode) error {
	switch {
	case t&fs.ModeSymlink != 0:
		target, err := os.Readlink(src)
		if err != nil {
			return err
		}
		return os.Symlink(target, dst)
	case t.IsDir():
		if err := os.Mkdir(dst, 0o755); err != nil {
			return err
		}
	default:
		f, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		f.Close()
	}
	if err := unix.Mount(src, dst, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		_ = os.Remove(dst) // then it is missing, rather than empty
		return fmt.Errorf("bind: %w", err)
	}
	return nil
}

// makePoint makes sure that a directory exists at where.
func (r *room) makePoint(where string) *failure {
	parent := filepath.Dir(where)
	mayCover := (parent == Home || parent == RepositoryHome) && !r.inPlace && !r.isOurs(parent)
	st, err := os.Stat(where)
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		return &failure{Kind: kindMountPoint, Path: raw(where), Text: "it is not a directory"}
	case !errors.Is(err, fs.ErrNotExist):
		if mayCover { // a dead mount, or that of another user
			return r.coverWith(parent, where)
		}
		return &failure{Kind: kindMountPoint, Path: raw(where), Text: err.Error()}
	}
	if f := r.makePoint(parent); f != nil {
		f.Path = raw(where)
		return f
	}
	switch {
	case r.isOurs(parent):
		return makeDir(where)
	case mayCover:
		return r.coverWith(parent, where)
	}
	return &failure{Kind: kindMountPoint, Path: raw(where), Text: fmt.Sprintf(
		"%s has no such directory, and none may be made there; make it, or take a place in %s", parent, Home)}
}

// isOurs says whether a directory lies in one of our tmpfs itself, by path and
// after symbolic links.
func (r *room) isOurs(dir string) bool {
	var st, own unix.Stat_t
	if unix.Stat(dir, &st) != nil {
		return false
	}
	for _, o := range r.ours {
		if unix.Stat(o, &own) == nil && own.Dev == st.Dev {
			return true
		}
	}
	return false
}

// makeDir makes a directory that everybody may enter, whatever the umask.
func makeDir(dir string) *failure {
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return failed(kindOther, "make "+dir, err)
	}
	return nil
}

// coverWith covers a directory that the machine has by a tmpfs with the same entries, so
// that the directory where can be made in it without a trace.
func (r *room) coverWith(home, where string) *failure {
	fd, err := unix.Open(home, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(kindOther, "open "+home, err)
	}
	defer unix.Close(fd)
	if err := mountTmpfs(home); err != nil {
		return failed(kindOther, "mount a tmpfs on "+home, err)
	}
	r.ours = append(r.ours, home)
	if f := r.fill("/proc/self/fd/"+strconv.Itoa(fd), home, filepath.Base(where)); f != nil {
		r.log.Warn("left out of the private namespace", "path", home+"/*", "error", f) // a dead mount, for one
	}
	return makeDir(where)
}

// seal makes our tmpfs read-only: what a command wrote there would be lost.
func (r *room) seal() *failure {
	const flags = unix.MS_BIND | unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	for _, dir := range r.ours {
		if err := unix.Mount("", dir, "", flags, ""); err != nil {
			return failed(kindOther, "make "+dir+" read-only", err)
		}
	}
	return nil
}

// tryFuse mounts and unmounts an idle FUSE file system, so that the reason is
// known where that is impossible.
func tryFuse() *failure {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return failed(kindFuse, openingFuse, err)
	}
	dir := cover()
	options := strings.Join([]string{
		"fd=" + strconv.Itoa(fd), "rootmode=40000",
		"user_id=" + strconv.Itoa(os.Geteuid()), "group_id=" + strconv.Itoa(os.Getegid()),
	}, ",")
	err = unix.Mount("skeletonkey", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, options)
	unix.Close(fd) // the kernel does not wait for an answer any more
	if err == nil {
		err = unix.Unmount(dir, unix.MNT_DETACH)
	}
	if err != nil {
		return failed(kindFuse, "mount a FUSE file system", err)
	}
	return nil
}
