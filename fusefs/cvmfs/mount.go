package cvmfs

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

const (
	// maxRead is the largest request of the kernel, in bytes.
	maxRead = 1 << 20
	// leastTimeout is how long the kernel believes what it has looked up, at least.
	// It could believe it forever: the revision does not change.
	leastTimeout = time.Hour
)

// FS returns the root of the repository as a file system, and the settings with which
// go-fuse is to serve it: for fs.Mount, or fs.NewNodeFS and fuse.NewServer. The
// repository must stay open until it is unmounted.
func (r *Repository) FS() (fs.InodeEmbedder, *fs.Options) {
	ttl := max(r.manifest.ttl, leastTimeout)
	logger := log.New(logWriter{r.log}, "", 0)
	return &node{repo: r, spot: r.root, entry: r.rootEntry}, &fs.Options{
		MountOptions: fuse.MountOptions{
			FsName: "cvmfs:" + r.name,
			Name:   "skeletonkey",
			// Root's processes may become other users; any other one stays alone.
			AllowOther:           os.Geteuid() == 0,
			MaxWrite:             maxRead,
			DisableSplice:        true, // it fails with requests of 1 MiB
			EnableSymlinkCaching: true,
			DirectMountStrict:    true,
			DirectMountFlags:     unix.MS_NOSUID | unix.MS_NODEV | unix.MS_RDONLY,
			Logger:               logger,
		},
		EntryTimeout:    &ttl,
		AttrTimeout:     &ttl,
		NegativeTimeout: &ttl,
		NullPermissions: true,
		Logger:          logger,
		RootStableAttr:  &fs.StableAttr{Ino: 1, Mode: unix.S_IFDIR},
	}
}

// logWriter makes go-fuse's messages ours.
type logWriter struct{ log *slog.Logger }

func (w logWriter) Write(p []byte) (int, error) {
	w.log.Warn("go-fuse: " + strings.TrimSpace(string(p)))
	return len(p), nil
}

// Mounted is a repository that is mounted and served by this process.
type Mounted struct {
	repo   *Repository
	server *fuse.Server
	where  string
}

// Mount shows the repository at where, an existing directory, with mount(2): that
// takes root, or the root of a namespace. Mounted.Close unmounts it and closes the
// repository.
func (r *Repository) Mount(where string) (*Mounted, error) {
	root, opts := r.FS()
	server, err := fs.Mount(where, root, opts)
	if err != nil {
		return nil, &Error{Repo: r.name, Op: "mount on", What: where, Err: err}
	}
	r.log.Info("cvmfs: mounted", "at", where)
	return &Mounted{r, server, where}, nil
}

// Wait returns when the repository has been unmounted, by whomever.
func (m *Mounted) Wait() { m.server.Wait() }

// Close unmounts, waits until all requests have been answered, and closes the
// repository. When processes still use the mount it is taken out of their sight, and
// Close waits until they have gone, or ctx ends.
func (m *Mounted) Close(ctx context.Context) error {
	err := unix.Unmount(m.where, unix.UMOUNT_NOFOLLOW)
	if err == unix.EBUSY {
		err = unix.Unmount(m.where, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	if err != nil && err != unix.EINVAL { // EINVAL: it is not mounted any more
		return &Error{Repo: m.repo.name, Op: "unmount", What: m.where, Err: err}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		m.server.Wait()
	}()
	select {
	case <-gone:
		return m.repo.Close()
	case <-ctx.Done():
		return &Error{Repo: m.repo.name, Op: "unmount", What: m.where, Err: fmt.Errorf("it is still in use: %w", ctx.Err())}
	}
}
