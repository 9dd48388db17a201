package cvmfs

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync"
	"time"

	"modernc.org/sqlite/vfs"
)

// maxCatalogs bounds the catalogs that are open; each takes a descriptor and up to
// some 2 MiB of memory.
const maxCatalogs = 48

// tree finds what is in a repository's catalogs, which it fetches as they are needed.
// Safe for concurrent use.
type tree struct {
	fetch *fetcher
	files *catalogFiles
	vfs   *vfs.FS
	name  string // of vfs

	mu   sync.Mutex
	open map[catalogRef]*list.Element // guarded by mu; of *openedCatalog
	used *list.List                   // guarded by mu; the one used last in front
	next int                          // guarded by mu; the next name for SQLite
}

// openedCatalog is a catalog that is open, or about to be.
type openedCatalog struct {
	*catalog
	ref   catalogRef
	file  string        // its name for SQLite
	ready chan struct{} // closed when it is open, or could not be opened
	err   error         // after ready
	users int           // guarded by tree.mu
}

func newTree(f *fetcher) (*tree, error) {
	t := &tree{fetch: f, files: &catalogFiles{files: make(map[string]catalogFile)}, open: make(map[catalogRef]*list.Element), used: list.New()}
	var err error
	t.name, t.vfs, err = vfs.New(t.files)
	return t, err
}

// close closes all catalogs; nobody may use them any more.
func (t *tree) close() error {
	var errs []error
	for e := t.used.Front(); e != nil; e = e.Next() {
		errs = append(errs, t.shut(e.Value.(*openedCatalog)))
	}
	return errors.Join(append(errs, t.vfs.Close())...)
}

func (t *tree) shut(o *openedCatalog) error {
	if o.catalog == nil {
		return nil
	}
	return errors.Join(o.catalog.close(), t.files.remove(o.file))
}

// with calls use with the catalog.
func (t *tree) with(ctx context.Context, ref catalogRef, use func(*catalog) error) error {
	o := t.take(ref)
	defer t.release(o)
	select {
	case <-o.ready:
	case <-ctx.Done():
		return ctx.Err()
	}
	if o.err != nil {
		return o.err
	}
	return use(o.catalog)
}

// take returns the catalog, and begins to open it when it is not open.
func (t *tree) take(ref catalogRef) *openedCatalog {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.open[ref]; e != nil {
		t.used.MoveToFront(e)
		o := e.Value.(*openedCatalog)
		o.users++
		return o
	}
	t.next++
	o := &openedCatalog{ref: ref, ready: make(chan struct{}), users: 2, file: strconv.Itoa(t.next)}
	t.open[ref] = t.used.PushFront(o)
	t.fetch.work.Go(func() { // whoever asked first may be interrupted; others wait too
		defer t.release(o)
		defer close(o.ready)
		o.catalog, o.err = t.load(o)
	})
	return o
}

// release gives back what take returned, and closes catalogs that are too many.
func (t *tree) release(o *openedCatalog) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.users--
	if o.users == 0 && o.err != nil {
		t.drop(o) // the next one tries again
	}
	for e := t.used.Back(); e != nil && t.used.Len() > maxCatalogs; {
		last := e.Value.(*openedCatalog)
		e = e.Prev()
		if last.users == 0 {
			t.drop(last)
		}
	}
}

// drop closes a catalog that nobody uses. mu is held.
func (t *tree) drop(o *openedCatalog) {
	e := t.open[o.ref]
	if e == nil || e.Value != any(o) {
		return
	}
	t.used.Remove(e)
	delete(t.open, o.ref)
	_ = t.shut(o) // it was only read
}

// load fetches and opens a catalog.
func (t *tree) load(o *openedCatalog) (*catalog, error) {
	f, size, err := t.fetch.open(t.fetch.ctx, want{object: o.ref.object, size: o.ref.size, alt: o.ref.alt})
	if err != nil {
		return nil, err
	}
	t.files.add(o.file, catalogFile{f, size})
	c, err := openCatalog("file:"+o.file+"?mode=ro&immutable=1&vfs="+t.name, o.ref.mount)
	if err != nil {
		return nil, errors.Join(err, t.files.remove(o.file))
	}
	return c, nil
}

// spot is a place in the repository: a directory, with the catalog in which it stands.
// When it is a transition, what is below it is in a nested one.
type spot struct {
	path       string
	catalog    catalogRef
	transition bool
}

// below returns the spot of an entry of the directory s, which was entered.
func (s spot) below(e *entry) spot {
	return spot{path: s.path + "/" + e.name, catalog: s.catalog, transition: e.transition()}
}

// enter returns s with the catalog that has the directory's content.
func (t *tree) enter(ctx context.Context, s spot) (spot, error) {
	if !s.transition {
		return s, nil
	}
	err := t.with(ctx, s.catalog, func(c *catalog) (err error) {
		s.catalog, err = c.nested(s.path)
		return err
	})
	s.transition = err != nil
	return s, err
}

// lookup returns the entry name of the directory s, which was entered; errNoEntry when
// there is none.
func (t *tree) lookup(ctx context.Context, s spot, name string) (e *entry, err error) {
	if !usable(name) {
		return nil, errNoEntry
	}
	err = t.with(ctx, s.catalog, func(c *catalog) (err error) {
		e, err = c.lookup(s.path + "/" + name)
		return err
	})
	if err == nil && e.name != name {
		return nil, fmt.Errorf("%w: the catalog has %q at %q", ErrCorrupt, e.name, s.path+"/"+name)
	}
	return e, err
}

// list returns what is in the directory s, which was entered.
func (t *tree) list(ctx context.Context, s spot) (entries []entry, err error) {
	err = t.with(ctx, s.catalog, func(c *catalog) (err error) {
		entries, err = c.list(s.path)
		return err
	})
	return entries, err
}

// root returns the entry of the root directory.
func (t *tree) root(ctx context.Context, ref catalogRef) (e *entry, err error) {
	err = t.with(ctx, ref, func(c *catalog) (err error) {
		e, err = c.lookup("")
		return err
	})
	if err == nil && !e.isDir() {
		err = fmt.Errorf("%w: its root is no directory", ErrCorrupt)
	}
	return e, err
}

// catalogFiles shows SQLite the catalogs in the store, by names that tree gives them,
// without their trailers.
type catalogFiles struct {
	mu    sync.Mutex
	files map[string]catalogFile // guarded by mu
}

// catalogFile is the file of a catalog, and the size of its content.
type catalogFile struct {
	*os.File
	size int64
}

func (c *catalogFiles) add(name string, f catalogFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files[name] = f
}

func (c *catalogFiles) remove(name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.files[name]
	delete(c.files, name)
	return f.Close()
}

// Open is what SQLite's virtual file system calls.
func (c *catalogFiles) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.files[path.Base(name)]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &sqlFile{SectionReader: io.NewSectionReader(f, 0, f.size)}, nil
}

// sqlFile is one open of a catalog by SQLite. The catalog's file outlives it.
type sqlFile struct{ *io.SectionReader }

func (*sqlFile) Close() error                 { return nil }
func (f *sqlFile) Stat() (fs.FileInfo, error) { return sqlInfo{f.Size()}, nil }

// sqlInfo is a size.
type sqlInfo struct{ size int64 }

func (i sqlInfo) Size() int64      { return i.size }
func (sqlInfo) Name() string       { return "catalog" }
func (sqlInfo) Mode() fs.FileMode  { return 0o400 }
func (sqlInfo) ModTime() time.Time { return time.Time{} }
func (sqlInfo) IsDir() bool        { return false }
func (sqlInfo) Sys() any           { return nil }
