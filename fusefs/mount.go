package fusefs

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Way is how a mount is made.
type Way string

// The ways. Auto is the first of Direct and Fusermount that works.
const (
	Auto       Way = ""
	Direct     Way = "mount(2)"
	Fusermount Way = "fusermount3"
)

// MountOptions say how to mount.
type MountOptions struct {
	// Way is how; the zero value tries one after the other.
	Way Way
	// AllowOther lets other users than the one who mounts in. They have the rights
	// of the one who mounts.
	AllowOther bool
}

// fsType is what /proc/mounts shows, and what Unmount is willing to unmount.
const fsType = "fuse.skeletonkey"

// maxWrite is the largest request of the kernel, in bytes.
const maxWrite = 1 << 20

// NoWayError says that a mount could not be made in any way, and why.
type NoWayError struct {
	Mountpoint string
	Reasons    []error // of each way that was tried, in order
}

// Error names the reasons, and the way out.
func (e *NoWayError) Error() string {
	reasons := make([]string, len(e.Reasons))
	for i, r := range e.Reasons {
		reasons[i] = r.Error()
	}
	return fmt.Sprintf("mount on %s: %s. Install fusermount3 (package fuse3) and make sure that /dev/fuse can be opened, mount as root, or use `skeletonkey exec`, which needs /dev/fuse alone",
		e.Mountpoint, strings.Join(reasons, "; "))
}

// Unwrap gives the reasons to errors.Is and errors.As.
func (e *NoWayError) Unwrap() []error { return e.Reasons }

// Mounted is a mount that is being served by this process.
type Mounted struct {
	fs         *FS
	mountpoint string // empty when somebody else mounted, and gave us the descriptor
	way        Way
	minor      int           // of the mount's device number; -1 when unknown
	served     chan struct{} // closed when the kernel sends no more requests
	once       sync.Once
	settled    chan struct{}   // closed when nothing is under way any more
	waiting    context.Context // ends when somebody gives up waiting for that
	giveUp     context.CancelCauseFunc
}

// MountOptions are the settings with which go-fuse serves f, whoever mounts it.
func (f *FS) MountOptions() *fs.Options {
	return &fs.Options{
		MountOptions: fuse.MountOptions{
			FsName:   f.URL(),
			Name:     strings.TrimPrefix(fsType, "fuse."),
			MaxWrite: maxWrite,
			// Splicing fails with requests of 1 MiB, and go-fuse panics in looking
			// whether it can be had where /dev/null cannot be written.
			DisableSplice: true,
			// The kernel keeps locks for all processes on this mount, and tells nobody:
			// the protocol has none.
			EnableLocks: false,
			// O_TRUNC comes with the open. Writes clear setuid bits on the server, or
			// have none to clear, so that the kernel need not ask before each.
			ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_HANDLE_KILLPRIV_V2,
			Logger:            log.New(logWriter{f.log}, "", 0),
		},
		EntryTimeout:    &f.ttl,
		AttrTimeout:     &f.ttl,
		NegativeTimeout: &f.ttl,
		NullPermissions: true,
		Logger:          log.New(logWriter{f.log}, "", 0),
		RootStableAttr:  f.rootAttr(),
	}
}

// logWriter makes go-fuse's messages ours.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Warn("go-fuse: " + strings.TrimSpace(string(p)))
	return len(p), nil
}

// Mount serves f at mountpoint, an existing directory, and returns once it is there.
// /dev/fd/N instead is a descriptor of /dev/fuse with which somebody else has mounted
// already. When no way works the error is a *NoWayError. ctx ends only what Mount does
// itself. The caller must call Close or Unmount.
func Mount(ctx context.Context, f *FS, mountpoint string, o MountOptions) (*Mounted, error) {
	err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	m := &Mounted{fs: f, minor: -1, served: make(chan struct{}), settled: make(chan struct{})}
	m.waiting, m.giveUp = context.WithCancelCause(context.Background())
	var fd int
	if n, err := fmt.Sscanf(mountpoint, "/dev/fd/%d", &fd); n == 1 && err == nil {
		m.way = "/dev/fd"
	} else {
		if m.mountpoint, err = realDirectory(mountpoint); err != nil {
			return nil, err
		}
		if fd, m.way, err = f.attach(ctx, m.mountpoint, o); err != nil {
			return nil, err
		}
	}
	if err := m.serve(fd); err != nil {
		if m.mountpoint != "" {
			_ = detach(m.mountpoint)
		}
		return nil, err
	}
	f.log.Info("mounted", "export", f.URL(), "mountpoint", mountpoint, "way", string(m.way))
	return m, nil
}

// attach mounts and returns the descriptor of /dev/fuse that belongs to the mount.
func (f *FS) attach(ctx context.Context, mountpoint string, o MountOptions) (int, Way, error) {
	no := &NoWayError{Mountpoint: mountpoint}
	for _, way := range []Way{Direct, Fusermount} {
		if o.Way != Auto && o.Way != way {
			continue
		}
		var fd int
		var err error
		if way == Direct {
			fd, err = f.mountDirect(mountpoint, o)
		} else {
			fd, err = f.mountFusermount(ctx, mountpoint, o)
		}
		if err == nil {
			return fd, way, nil
		}
		f.log.Debug("cannot mount this way", "way", string(way), "err", err)
		no.Reasons = append(no.Reasons, err)
	}
	if len(no.Reasons) == 0 {
		no.Reasons = append(no.Reasons, fmt.Errorf("way %q is not one of %q, %q", o.Way, Direct, Fusermount))
	}
	return -1, "", no
}

// realDirectory is the mountpoint by the name that the table of mounts has for it. It
// fails where no way can work.
func realDirectory(mountpoint string) (string, error) {
	dir, err := filepath.Abs(mountpoint)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err == nil {
		var st os.FileInfo
		if st, err = os.Stat(dir); err == nil && !st.IsDir() {
			err = &os.PathError{Op: "mount on", Path: mountpoint, Err: unix.ENOTDIR}
		}
	}
	if errors.Is(err, unix.ENOTCONN) {
		return "", fmt.Errorf("mount on %s: a mount whose program is gone is in the way; run `skeletonkey umount %s`", mountpoint, mountpoint)
	}
	return dir, err
}

// mountDirect mounts with mount(2), which takes root, or the root of a namespace.
func (f *FS) mountDirect(mountpoint string, o MountOptions) (int, error) {
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &os.PathError{Op: "open", Path: "/dev/fuse", Err: err}
	}
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d", fd, os.Geteuid(), os.Getegid(), maxWrite)
	if o.AllowOther {
		data += ",allow_other"
	}
	var flags uintptr = unix.MS_NOSUID | unix.MS_NODEV
	if f.ro {
		flags |= unix.MS_RDONLY
	}
	if err := unix.Mount(f.URL(), mountpoint, fsType, flags, data); err != nil {
		unix.Close(fd)
		return -1, os.NewSyscallError(string(Direct), err)
	}
	return fd, nil
}

// serve answers the kernel's requests on fd, which it takes over.
func (m *Mounted) serve(fd int) error {
	opts := m.fs.MountOptions()
	raw := &rawFS{fs.NewNodeFS(m.fs.root, opts), m.fs}
	server, err := fuse.NewServer(raw, fmt.Sprintf("/dev/fd/%d", fd), &opts.MountOptions)
	if err != nil { // the descriptor is closed
		return fmt.Errorf("serve the mount: %w", err)
	}
	go func() {
		defer close(m.served)
		server.Serve()
	}()
	if err := server.WaitMount(); err != nil {
		return err
	}
	if m.mountpoint != "" {
		m.minor = minorOf(m.mountpoint)
		m.readMore()
		quietPoll(m.mountpoint)
	}
	return nil
}

// readMore lets the kernel read 1 MiB ahead instead of 128 KiB, where it may be told to:
// that saves root a tenth of the time.
func (m *Mounted) readMore() {
	file := fmt.Sprintf("/sys/class/bdi/0:%d/read_ahead_kb", m.minor)
	if err := os.WriteFile(file, []byte("1024"), 0); err != nil {
		m.fs.log.Debug("the kernel reads ahead as usual", "err", err)
	}
}

// quietPoll makes the kernel ask once whether files can be polled, and remember that
// they cannot: a process that opens files of a mount which it serves itself, like a
// test, would otherwise wait for itself. go-fuse answers for this name.
func quietPoll(mountpoint string) {
	fd, err := unix.Open(filepath.Join(mountpoint, ".go-fuse-epoll-hack"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return // a user who may not look into his own mount, as root with a user's
	}
	defer unix.Close(fd)
	_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
}

// Way tells how the mount was made.
func (m *Mounted) Way() Way { return m.way }

// Wait returns when the mount has been unmounted, by whomever, and all that was
// written has been dealt with, or an Unmount has given that up; then as Err does.
func (m *Mounted) Wait() error {
	<-m.served
	return m.finish(context.Background())
}

// Err is what is known to be lost, see FS.Err.
func (m *Mounted) Err() error { return m.fs.Err() }

// finish waits for what goes on behind, after the kernel's last request. When ctx ends,
// all who wait for that give up.
func (m *Mounted) finish(ctx context.Context) error {
	m.once.Do(func() {
		go func() {
			defer close(m.settled)
			m.fs.settle()
		}()
	})
	select {
	case <-m.settled:
	case <-m.waiting.Done():
	case <-ctx.Done():
		m.giveUp(ctx.Err())
	}
	select {
	case <-m.settled:
		return m.Err()
	default:
	}
	return errors.Join(fmt.Errorf("%s: data is still under way to the server: %w", m.fs.URL(), context.Cause(m.waiting)), m.Err())
}
