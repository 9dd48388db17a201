package fusefs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"
	"weak"

	"github.com/hanwen/go-fuse/v2/fs"
	"golang.org/x/sync/semaphore"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/cache"
)

// DefaultTTL is how long names and attributes are believed without asking again.
const DefaultTTL = time.Second

// memory is how many bytes all open files together read ahead, and how many they write
// behind.
const memory = 256 << 20

// Owner is a user and group.
type Owner struct{ UID, GID uint32 }

// Options say how an export appears.
type Options struct {
	// Path is the directory of the export that becomes the root of the mount; empty
	// means the whole export.
	Path string
	// ReadOnly refuses every change with EROFS.
	ReadOnly bool
	// TTL is how long names and attributes are believed. Zero is DefaultTTL.
	TTL time.Duration
	// Owner is shown as the owner of everything; nil means the user of this process.
	Owner *Owner
	// Log gets what went wrong behind an application's back; nil discards it.
	Log *slog.Logger
}

// FS is an export as a file system, to be given to Mount, once.
type FS struct {
	client *client.Client
	base   string // of the export
	ro     bool
	ttl    time.Duration
	owner  Owner
	log    *slog.Logger
	root   *node

	ids     identities
	tree    *semaphore.Weighted // one for each path in use, all of it for a rename
	buffers cache.Buffers
	ahead   *cache.Budget  // for what is read
	behind  *cache.Budget  // for what is written
	work    sync.WaitGroup // all goroutines but go-fuse's
	aborted chan struct{}

	mu      sync.Mutex           // guards the following
	writers map[*handle]struct{} // that have accepted bytes
	plain   map[int64]struct{}   // devices without extended attributes
	lost    []error              // failed writes that nobody was told of
	ended   bool                 // aborted is closed
}

// treeAll is all of FS.tree.
const treeAll = 1 << 30

// errAborted is what requests get that are under way, or come, when a mount is
// aborted.
var errAborted error = syscall.ENOTCONN

// New returns c's export as a file system. It does not talk to the server. The
// caller keeps c, which must outlive the mount.
func New(c *client.Client, o Options) (*FS, error) {
	if c == nil {
		return nil, errors.New("fusefs: no client")
	}
	f := &FS{
		client:  c,
		base:    wire.CleanPath(o.Path),
		ro:      o.ReadOnly,
		ttl:     o.TTL,
		log:     o.Log,
		tree:    semaphore.NewWeighted(treeAll),
		ahead:   cache.NewBudget(memory),
		behind:  cache.NewBudget(memory),
		aborted: make(chan struct{}),
		writers: make(map[*handle]struct{}),
		plain:   make(map[int64]struct{}),
	}
	f.ids.nodes = make(map[ident]weak.Pointer[node])
	if f.ttl <= 0 {
		f.ttl = DefaultTTL
	}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	f.owner = Owner{uint32(os.Geteuid()), uint32(os.Getegid())}
	if o.Owner != nil {
		f.owner = *o.Owner
	}
	return f, nil
}

// open asks the server for the root, which must be a directory.
func (f *FS) open(ctx context.Context) error {
	asked := time.Now()
	st, err := f.client.Stat(ctx, f.base)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return &wire.Error{Op: "mount", Path: f.URL(), Code: wire.NotDir}
	}
	f.ids.device = st.Dev
	f.root = newNode(f, identOf(&st), syscall.S_IFDIR)
	f.root.learn(&st, asked, f.ttl)
	f.ids.mu.Lock()
	f.ids.put(f.root)
	f.ids.mu.Unlock()
	return nil
}

// rootAttr is the identity of the root in go-fuse's terms.
func (f *FS) rootAttr() *fs.StableAttr {
	return &fs.StableAttr{Mode: syscall.S_IFDIR, Ino: f.ids.number(f.root.id)}
}

// URL names the export, as chirp://host:port/path.
func (f *FS) URL() string { return "chirp://" + f.client.Server() + f.base }

// Err is what is known to be lost: each write that an application was told had
// succeeded, that failed later, and whose failure no write or fsync reported. (What a
// close reports is seldom heard.) It is nil when nothing is.
func (f *FS) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.lost...)
}

// lose notes a failed write that nobody was told of.
func (f *FS) lose(path string, err error) {
	f.log.Error("data could not be written", "path", path, "err", err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lost = append(f.lost, err)
}

// abort fails all requests that are under way and all that come.
func (f *FS) abort() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended {
		f.ended = true
		close(f.aborted)
	}
}

// locked runs call while no path changes. call must not do so itself.
func (f *FS) locked(ctx context.Context, call func() error) error {
	if !f.tree.TryAcquire(1) {
		if err := f.tree.Acquire(ctx, 1); err != nil {
			return err
		}
	}
	defer f.tree.Release(1)
	return call()
}
