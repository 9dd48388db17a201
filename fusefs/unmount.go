package fusefs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// ErrNotMounted says that no mount of this program is at a place.
var ErrNotMounted = errors.New("not a mount of skeletonkey")

// Unmount removes the mount of this program at mountpoint, whoever serves it, and be
// its program or its server dead: it never looks into the mount. Who still has files
// open there may go on with them; the program that serves them ends after that.
func Unmount(mountpoint string) error {
	place, err := resolve(mountpoint)
	if err != nil {
		return err
	}
	if minorOf(place) < 0 {
		return &os.PathError{Op: "umount", Path: mountpoint, Err: ErrNotMounted}
	}
	return detach(place)
}

// resolve makes a mountpoint's name that of the mount table. The last component is
// not looked at.
func resolve(mountpoint string) (string, error) {
	abs, err := filepath.Abs(mountpoint)
	if err != nil {
		return "", err
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// minorOf finds the minor device number of our mount at mountpoint, the uppermost
// one; -1 when there is none. It is the number of the connection as well.
func minorOf(mountpoint string) int {
	minor := -1
	_, _ = mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		if i.Mountpoint == mountpoint {
			minor = -1
			if i.FSType == fsType {
				minor = i.Minor
			}
		}
		return true, false
	})
	return minor
}

// detach takes the mount out of the tree, even while it is in use.
func detach(mountpoint string) error {
	err := unix.Unmount(mountpoint, unix.UMOUNT_NOFOLLOW)
	if err == unix.EBUSY {
		err = unix.Unmount(mountpoint, unix.UMOUNT_NOFOLLOW|unix.MNT_DETACH)
	}
	switch err {
	case nil:
		return nil
	case unix.EPERM:
		return detachFusermount(mountpoint)
	}
	return &os.PathError{Op: "umount", Path: mountpoint, Err: err}
}

// detachFusermount is detach for a user who mounted with fusermount3.
func detachFusermount(mountpoint string) error {
	program, err := findFusermount(os.Getenv("PATH"), mountpoint)
	if err != nil {
		return fmt.Errorf("umount %s: %w", mountpoint, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fusermountTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-u", "-z", "--", mountpoint)
	cmd.Dir = "/"
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return programError(program, err, said.String())
	}
	return nil
}

// Unmount takes the mount out of the tree at once, lets those who use it finish until
// ctx ends, and then fails whatever they do: it always comes to its end, with a dead
// server too. It returns what Err does, or why the end could not be awaited.
func (m *Mounted) Unmount(ctx context.Context) error {
	detached := m.startDetach()
	for waiting := true; waiting; {
		select {
		case <-m.served:
			return m.finish(ctx)
		case err := <-detached:
			if err != nil && !m.over() {
				return errors.Join(err, m.Err())
			}
			detached = nil
		case <-ctx.Done():
			waiting = false
		}
	}
	m.fs.abort()
	m.abortConnection()
	select {
	case <-m.served:
		if detached != nil {
			<-detached
		}
		return m.finish(ctx)
	case <-time.After(abortTimeout):
		return errors.Join(m.Err(), fmt.Errorf("umount %s: it is still in use: %w", m.mountpoint, ctx.Err()))
	}
}

// startDetach unmounts behind: what the kernel still has to write goes through a
// server that may be dead.
func (m *Mounted) startDetach() <-chan error {
	done := make(chan error, 1)
	if m.mountpoint == "" || m.over() {
		done <- nil
		return done
	}
	go func() { done <- detach(m.mountpoint) }()
	return done
}

// Close writes back what is left, unmounts, and waits until all has been answered.
// It returns an error if data that was accepted may not have reached the server. When
// ctx ends it gives up as Unmount does.
func (m *Mounted) Close(ctx context.Context) error { return m.Unmount(ctx) }

// abortTimeout is how long the kernel may take to end an aborted connection.
const abortTimeout = 2 * time.Second

func (m *Mounted) over() bool {
	select {
	case <-m.served:
		return true
	default:
		return false
	}
}

// abortConnection makes the kernel fail all that is asked of the mount.
func (m *Mounted) abortConnection() {
	if m.minor < 0 {
		return
	}
	abort := filepath.Join(strconv.Itoa(m.minor), "abort")
	err := os.WriteFile(filepath.Join("/sys/fs/fuse/connections", abort), []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) {
		err = abortUnmounted(abort)
	}
	if err != nil {
		m.fs.log.Debug("cannot abort the connection", "err", err)
	}
}

// abortUnmounted writes to a file of the kernel's list of connections where that is not
// mounted: root can have it for himself.
func abortUnmounted(file string) error {
	control, err := unix.Fsopen("fusectl", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(control)
	if err := unix.FsconfigCreate(control); err != nil {
		return os.NewSyscallError("fsconfig", err)
	}
	root, err := unix.Fsmount(control, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("fsmount", err)
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("openat", err)
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte("1"))
	return err
}
