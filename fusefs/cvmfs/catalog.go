package cvmfs

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// The catalogs that we read: schema 2.4 and 2.5 with any revision. Revisions only
// add: 1 the size of nested catalogs, 4 the table bind_mountpoints, 7 nanoseconds.
const (
	oldestSchema = 2.4
	newestSchema = 2.5
)

// errNoEntry says that a catalog has no such path.
var errNoEntry = errors.New("no such file or directory")

// catalogRef names a catalog and where it is.
type catalogRef struct {
	object object
	size   int64  // of the file, or unknown
	mount  string // the directory whose content it has; empty for the root
	alt    string // another path on the servers, tried first
}

// catalog is an open catalog.
type catalog struct {
	db     *sql.DB
	mount  string
	prefix string // stands in it for mount
	stmts  struct{ lookup, list, nested, chunks *sql.Stmt }
}

// openCatalog opens a database by its data source name.
func openCatalog(dsn, mount string) (*catalog, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // statements and pages are kept by the connection
	c := &catalog{db: db, mount: mount}
	if err := c.prepare(); err != nil {
		c.close()
		return nil, fmt.Errorf("%w: catalog: %w", ErrCorrupt, err)
	}
	return c, nil
}

// prepare looks at the schema and prepares the queries for it.
func (c *catalog) prepare() error {
	properties, err := c.properties()
	if err != nil {
		return err
	}
	schema, err := strconv.ParseFloat(properties["schema"], 64)
	if err != nil || schema < oldestSchema-1e-4 || schema > newestSchema+1e-4 {
		return fmt.Errorf("%w: schema %.20q, not one from %v to %v", ErrUnsupported, properties["schema"], oldestSchema, newestSchema)
	}
	revision, _ := strconv.Atoi(properties["schema_revision"]) // none is zero
	c.prefix = properties["root_prefix"]
	fields := "name, symlink, hash, size, mode, mtime, flags, uid, gid, hardlinks, NULL"
	if revision >= 7 {
		fields = strings.Replace(fields, "NULL", "mtimens", 1)
	}
	size := "NULL"
	if revision >= 1 {
		size = "size"
	}
	nested := "SELECT sha1, " + size + " FROM nested_catalogs WHERE path = ?1"
	if revision >= 4 {
		nested += " UNION ALL SELECT sha1, size FROM bind_mountpoints WHERE path = ?1"
	}
	for stmt, text := range map[**sql.Stmt]string{
		&c.stmts.lookup: "SELECT " + fields + " FROM catalog WHERE md5path_1 = ? AND md5path_2 = ?",
		&c.stmts.list:   "SELECT " + fields + " FROM catalog WHERE parent_1 = ? AND parent_2 = ?",
		&c.stmts.nested: nested,
		&c.stmts.chunks: "SELECT offset, size, hash FROM chunks WHERE md5path_1 = ? AND md5path_2 = ? ORDER BY offset",
	} {
		if *stmt, err = c.db.Prepare(text); err != nil {
			return err
		}
	}
	return nil
}

// properties are what the catalog says of itself.
func (c *catalog) properties() (map[string]string, error) {
	rows, err := c.db.Query("SELECT key, value FROM properties")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]string)
	for rows.Next() {
		var key, value sql.NullString
		if err := rows.Scan(&key, &value); err != nil {
			return nil, err
		}
		all[key.String] = value.String
	}
	return all, rows.Err()
}

func (c *catalog) close() error { return c.db.Close() }

// inner is path as the catalog knows it.
func (c *catalog) inner(path string) string { return c.prefix + strings.TrimPrefix(path, c.mount) }

// lookup returns what is at path, or errNoEntry. The root of the catalog has the
// name that it has in there.
func (c *catalog) lookup(path string) (*entry, error) {
	one, two := pathKey(c.inner(path))
	e, err := scanEntry(c.stmts.lookup.QueryRow(one, two))
	if errors.Is(err, sql.ErrNoRows) || err == nil && e == nil {
		return nil, errNoEntry
	}
	return e, err
}

// list returns what is in the directory path, ordered by name, without what is
// hidden.
func (c *catalog) list(path string) ([]entry, error) {
	one, two := pathKey(c.inner(path))
	rows, err := c.stmts.list.Query(one, two)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []entry
	for rows.Next() {
		e, err := scanEntry(rows)
		if err != nil {
			return nil, err
		}
		if e != nil && usable(e.name) && e.flags&flagHidden == 0 {
			list = append(list, *e)
		}
	}
	slices.SortFunc(list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return list, rows.Err()
}

// scanEntry reads a row. It returns nil for what is no file of any kind.
func scanEntry(row interface{ Scan(...any) error }) (*entry, error) {
	var e entry
	var name, link sql.NullString
	var sum []byte
	var size, mode, mtime, flags, uid, gid, links, nanos sql.NullInt64
	if err := row.Scan(&name, &link, &sum, &size, &mode, &mtime, &flags, &uid, &gid, &links, &nanos); err != nil {
		return nil, err
	}
	e.name, e.link, e.size = name.String, link.String, max(size.Int64, 0)
	e.mode, e.flags = uint32(mode.Int64), uint32(flags.Int64)
	e.uid, e.gid = uint32(uid.Int64), uint32(gid.Int64)
	e.links, e.group = max(uint32(links.Int64), 1), uint32(links.Int64>>32)
	e.mtime = time.Unix(mtime.Int64, max(nanos.Int64, 0))
	e.object, e.hashed = objectOf(sum, e.flags)
	return e.checked(), nil
}

// checked makes flags and mode agree: the flags count. It returns nil when they say
// nothing that makes sense.
func (e *entry) checked() *entry {
	kind := uint32(0)
	switch {
	case e.flags&(flagDir|flagNestedMount|flagNestedRoot) != 0:
		kind = unix.S_IFDIR
	case e.flags&flagLink != 0:
		kind = unix.S_IFLNK
	case e.flags&flagSpecial != 0:
		kind = e.kind() // a device, FIFO or socket
		if kind == unix.S_IFBLK || kind == unix.S_IFCHR {
			e.deviceN, e.size = uint64(e.size), 0
		}
	case e.flags&flagFile != 0:
		kind = unix.S_IFREG
	}
	if kind == 0 {
		return nil
	}
	e.mode = e.mode&^unix.S_IFMT | kind
	return e
}

// nested returns the catalog whose place path is.
func (c *catalog) nested(path string) (catalogRef, error) {
	var sum sql.NullString
	var size sql.NullInt64
	err := c.stmts.nested.QueryRow(c.inner(path)).Scan(&sum, &size)
	if err != nil {
		return catalogRef{}, fmt.Errorf("%w: the nested catalog at %q is not known: %w", ErrCorrupt, path, err)
	}
	o, err := parseObject(sum.String, catalogObj)
	if err != nil {
		return catalogRef{}, err
	}
	r := catalogRef{object: o, size: unknown, mount: path}
	if size.Int64 > 0 {
		r.size = size.Int64
	}
	return r, nil
}

// chunk is a part of a file.
type chunk struct {
	want
	offset int64
}

// chunks returns the parts of the file at path, which make it up without a gap.
func (c *catalog) chunks(path string, e *entry) ([]chunk, error) {
	one, two := pathKey(c.inner(path))
	rows, err := c.stmts.chunks.Query(one, two)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []chunk
	var end int64
	for rows.Next() {
		var ch chunk
		var sum []byte
		if err := rows.Scan(&ch.offset, &ch.size, &sum); err != nil {
			return nil, err
		}
		o, ok := objectOf(sum, e.flags)
		if !ok || ch.size <= 0 || ch.offset != end {
			return nil, fmt.Errorf("%w: the chunks of %q do not fit together", ErrCorrupt, path)
		}
		o.suffix = partialObj
		ch.object, end = o, end+ch.size
		list = append(list, ch)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if end != e.size {
		return nil, fmt.Errorf("%w: the chunks of %q are %d bytes, not %d", ErrCorrupt, path, end, e.size)
	}
	return list, nil
}

// totals are the bytes and the entries of the whole repository, when the root catalog
// tells.
func (c *catalog) totals() (bytes, entries uint64) {
	rows, err := c.db.Query("SELECT counter, value FROM statistics")
	if err != nil {
		return 0, 0
	}
	defer rows.Close()
	for rows.Next() {
		var counter string
		var value int64
		if rows.Scan(&counter, &value) != nil || value < 0 {
			continue
		}
		_, what, _ := strings.Cut(counter, "_")
		switch what {
		case "file_size":
			bytes += uint64(value)
		case "regular", "symlink", "dir":
			entries += uint64(value)
		}
	}
	return bytes, entries
}
