package private

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// noNamespace turns the refusal of every way into an error for people.
func noNamespace(refused []*failure) error {
	var errs []error
	chroot := false
	for _, f := range refused {
		errs = append(errs, f)
		chroot = chroot || f.Text == inChroot
	}
	err := errors.Join(errs...)
	e := &Unavailable{
		What: ErrNoNamespace, Err: err, Reason: "every way was refused",
		WayOut: "ask the administrator to allow user namespaces, or use `skeletonkey mount` where fusermount3 is installed",
	}
	switch {
	case chroot:
		e.Reason = "this is a chroot"
		e.WayOut = "make its directory a mount point first (mount --bind DIR DIR), or use `skeletonkey mount`"
	case sysctl("user/max_user_namespaces") == "0":
		e.Reason = "user namespaces are switched off here (user.max_user_namespaces = 0)"
	case sysctl("kernel/unprivileged_userns_clone") == "0":
		e.Reason = "user namespaces are for root only (kernel.unprivileged_userns_clone = 0)"
	case sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1" && errors.Is(err, fs.ErrPermission):
		e.Reason = "AppArmor forbids it (kernel.apparmor_restrict_unprivileged_userns = 1)"
		e.WayOut = "ask the administrator for an AppArmor profile with `userns` for this program, or use `skeletonkey mount` where fusermount3 is installed"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS):
		e.Reason = "the limit on namespaces is reached (sysctl user.max_*_namespaces)"
	case errors.Is(err, syscall.EINVAL):
		e.Reason = "the kernel was built without user namespaces"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = "namespaces are forbidden here, as in a chroot or in a container with a strict seccomp profile"
	case errors.Is(err, fs.ErrNotExist):
		e.Reason, e.WayOut = "/proc is not mounted", "mount it"
	}
	return e
}

// sysctl returns a kernel setting, "" if there is none.
func sysctl(name string) string {
	text, _ := os.ReadFile("/proc/sys/" + name)
	return strings.TrimSpace(string(text))
}

// noFuse turns a failure of kind kindFuse into an error for people.
func noFuse(f *failure) error {
	e := &Unavailable{What: ErrNoFuse, Err: f, Reason: "FUSE cannot be used", WayOut: "use `skeletonkey get` and `put` instead of a mount"}
	opening := f.Text == openingFuse
	switch {
	case opening && f.Errno == unix.ENOENT:
		e.Reason, e.WayOut = "there is no /dev/fuse", "load the kernel module fuse, or start the container with --device /dev/fuse"
	case opening && (f.Errno == unix.ENODEV || f.Errno == unix.ENXIO), f.Errno == unix.ENODEV:
		e.Reason, e.WayOut = "the kernel has no FUSE", "load the kernel module fuse"
	case opening:
		e.Reason, e.WayOut = "/dev/fuse is not open to this user", "chmod 0666 /dev/fuse (the usual mode), or start the container with --device /dev/fuse"
	case f.Errno == unix.EPERM:
		e.Reason, e.WayOut = "FUSE may not be mounted in a user namespace", "use Linux 4.18 or newer, or run as root"
	}
	return e
}
