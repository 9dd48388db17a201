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
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// fixedPlaces are searched for fusermount3 after PATH.
var fixedPlaces = []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"}

// errNoFusermount says that the program was not found.
var errNoFusermount = errors.New("fusermount3 is neither in PATH nor in " + strings.Join(fixedPlaces, ", "))

// findFusermount looks for fusermount3 in the directories of path, and in fixed
// places. Relative directories are passed by, and so is every place on the mountpoint:
// it may be a mount that does not answer.
func findFusermount(path, mountpoint string) (string, error) {
	for _, name := range []string{"fusermount3", "fusermount"} {
		for _, dir := range append(filepath.SplitList(path), fixedPlaces...) {
			dir = filepath.Clean(dir)
			if !filepath.IsAbs(dir) || within(dir, mountpoint) {
				continue
			}
			file := filepath.Join(dir, name)
			if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
				return file, nil
			}
		}
	}
	return "", errNoFusermount
}

// within reports whether path is dir, or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// fusermountTimeout is how long the program may take.
const fusermountTimeout = 30 * time.Second

// mountFusermount lets the setuid program fusermount3 mount, and returns the
// descriptor that it sends.
func (f *FS) mountFusermount(ctx context.Context, mountpoint string, o MountOptions) (int, error) {
	program, err := findFusermount(os.Getenv("PATH"), mountpoint)
	if err != nil {
		return -1, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(pair[0]), "fusermount3's answer")
	defer ours.Close()
	theirs := os.NewFile(uintptr(pair[1]), "fusermount3's end")
	ctx, cancel := context.WithTimeout(ctx, fusermountTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-o", f.fusermountOptions(o), "--", mountpoint)
	cmd.Env = []string{"_FUSE_COMMFD=3"}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Dir = "/"
	var said bytes.Buffer
	cmd.Stderr = &said
	err = cmd.Run()
	theirs.Close()
	if err != nil {
		return -1, programError(program, err, said.String())
	}
	fd, err := receiveFD(int(ours.Fd()))
	if err != nil {
		return -1, fmt.Errorf("%s: no descriptor came: %w", program, err)
	}
	return fd, nil
}

func programError(program string, err error, said string) error {
	if said = strings.TrimSpace(said); said != "" {
		return fmt.Errorf("%s: %w: %s", program, err, strings.ReplaceAll(said, "\n", "; "))
	}
	return fmt.Errorf("%s: %w", program, err)
}

func (f *FS) fusermountOptions(o MountOptions) string {
	escape := strings.NewReplacer(`\`, `\\`, `,`, `\,`)
	list := []string{
		"fsname=" + escape.Replace(f.URL()),
		"subtype=" + strings.TrimPrefix(fsType, "fuse."),
		"max_read=" + strconv.Itoa(maxWrite),
		"nosuid", "nodev",
	}
	if o.AllowOther {
		list = append(list, "allow_other")
	}
	if f.ro {
		list = append(list, "ro")
	}
	return strings.Join(list, ",")
}

// receiveFD takes one descriptor from a socket.
func receiveFD(socket int) (int, error) {
	data, control := make([]byte, 4), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, data, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return -1, err
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil && len(fds) == 1 {
			return fds[0], nil
		}
	}
	return -1, errors.New("message without a descriptor")
}
