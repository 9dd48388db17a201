package private

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// getCaps returns the calling thread's effective and permitted capabilities.
func getCaps() (effective, permitted uint64) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&hdr, &data[0]) != nil {
		return 0, 0
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective),
		uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted)
}

// mayMount says whether this process may make mounts without more ado.
func mayMount() bool {
	effective, _ := getCaps()
	return effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// callersCaps are the capabilities that a command may have in a user namespace:
// root's own. Any other user has none, as without us.
func callersCaps() uint64 {
	if os.Geteuid() != 0 {
		return 0
	}
	_, permitted := getCaps()
	return permitted
}

// confine takes all capabilities but keep from the calling thread, now and at
// every exec to come, and, when none is left, makes setuid programs powerless.
func confine(keep uint64) error {
	for c := range lastCap() + 1 {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("drop capability %d from the bounding set: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	_, permitted := getCaps()
	left := permitted & keep
	data := [2]unix.CapUserData{
		{Effective: uint32(left), Permitted: uint32(left)},
		{Effective: uint32(left >> 32), Permitted: uint32(left >> 32)},
	}
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if keep != 0 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}

// lastCap is the greatest capability that the kernel knows.
func lastCap() int {
	text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n < 64 {
			return n
		}
	}
	return unix.CAP_LAST_CAP
}
