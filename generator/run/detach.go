package run

import (
	"errors"
	"fmt"

	"github.com/moby/sys/mountinfo"

	"skeletonkey/fusefs"
)

// detachBelow unmounts, at once and whatever state they are in, the mounts of this
// program below dir, the last one first. Anything else that is mounted there stays,
// and is an error.
func detachBelow(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return fmt.Errorf("read /proc/self/mountinfo: %w", err)
	}
	var errs []error
	for i := len(mounts) - 1; i >= 0; i-- {
		m := mounts[i]
		err := fusefs.Unmount(m.Mountpoint)
		if errors.Is(err, fusefs.ErrNotMounted) {
			err = fmt.Errorf("something else (%s) is mounted at %s: unmount it", m.FSType, m.Mountpoint)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
