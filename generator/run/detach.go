package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// unmounters are the programs by which an ordinary user unmounts his FUSE file
// systems.
var unmounters = []string{"fusermount3", "fusermount"}

// detachBelow unmounts, at once and whatever state they are in, the FUSE file
// systems that are mounted below dir, the last one first. Anything else that is
// mounted there stays, and is an error.
func detachBelow(ctx context.Context, dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("read /proc/self/mountinfo: %w", err)
	}
	var errs []error
	for i := len(mounts) - 1; i >= 0; i-- {
		m := mounts[i]
		if m.FSType != "fuse" && !strings.HasPrefix(m.FSType, "fuse.") {
			errs = append(errs, fmt.Errorf("something (%s) is mounted at %s: unmount it", m.FSType, m.Mountpoint))
			continue
		}
		errs = append(errs, detach(ctx, m.Mountpoint))
	}
	return errors.Join(errs...)
}

// detach unmounts one FUSE file system.
func detach(ctx context.Context, where string) error {
	err := unix.Unmount(where, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	if err == nil || os.Geteuid() == 0 {
		if err != nil {
			return fmt.Errorf("unmount %s: %w", where, err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for _, program := range unmounters {
		out, e := exec.CommandContext(ctx, program, "-u", "-z", "-q", "--", where).CombinedOutput()
		if e == nil {
			return nil
		}
		if !errors.Is(e, exec.ErrNotFound) {
			err = fmt.Errorf("%s: %w %s", program, e, strings.TrimSpace(string(out)))
		}
	}
	return fmt.Errorf("unmount %s: %w", where, err)
}

// hasHelper says whether an ordinary user can mount with the help of a program.
func hasHelper() bool {
	return slices.ContainsFunc(unmounters, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}
