package cvmfstest

import (
	"crypto/md5"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// File is what a repository has at a path. The zero value is an empty regular file of
// mode 0644.
type File struct {
	// Content is a regular file's.
	Content []byte
	// Chunks are the sizes of its pieces, in bytes; the last one is repeated.
	Chunks []int
	// Hash is how the content is hashed, Plain that it is not compressed.
	Hash  Hash
	Plain bool
	// Link is the target of a symbolic link.
	Link string
	// Dir makes it a directory, Nested one with a catalog of its own.
	Dir, Nested bool
	// Bind makes it a directory whose content is that of the root catalog with this
	// hash.
	Bind string
	// Mode are the permissions; zero is 0644, and 0755 for a directory.
	Mode uint32
	// Time is of the last change; zero is a fixed time.
	Time time.Time
	// Group and Links are of hard links: a number that is unique in the catalog, and
	// how many there are.
	Group, Links int
	// Flags are added to those that the file has.
	Flags int64
	// Sum replaces the content's hash, in digits without the algorithm.
	Sum string
	// Size replaces the content's size, where it is not zero.
	Size int64
}

const (
	flagDir, flagNested, flagFile, flagLink, flagNestedRoot, flagChunked = 1, 2, 4, 8, 32, 64
	flagPlain, flagBind                                                  = 1 << 11, 0x4000
)

// catalog is one in the making.
type catalog struct {
	mount string
	file  string
	db    *sql.DB
	tx    *sql.Tx
	add   *sql.Stmt
	stats map[string]int64
}

// builder makes the catalogs of one revision.
type builder struct {
	p        *Publisher
	dir      string
	catalogs map[string]*catalog // by where they are mounted
}

// build writes all objects and returns the root catalog's hash and size.
func (b *builder) build(files map[string]File) (string, int64, error) {
	dir, err := os.MkdirTemp("", "cvmfstest-")
	if err != nil {
		return "", 0, err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	all := map[string]File{"": {Dir: true}}
	for name, f := range files {
		all["/"+name] = f
		for d := path.Dir("/" + name); d != "/"; d = path.Dir(d) {
			if _, given := files[d[1:]]; !given {
				all[d] = File{Dir: true}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) { // directories before what is in them
		if err := b.put(name, all[name]); err != nil {
			return "", 0, fmt.Errorf("%s: %w", name, err)
		}
	}
	// From the innermost to the root, whose name is the shortest.
	mounts := slices.SortedFunc(maps.Keys(b.catalogs), func(a, b string) int { return len(b) - len(a) })
	for _, mount := range mounts {
		sum, size, err := b.finish(b.catalogs[mount])
		if err != nil || mount == "" {
			return sum, size, err
		}
		if err := b.above(mount).nest("nested_catalogs", mount, sum, size); err != nil {
			return "", 0, err
		}
	}
	return "", 0, fmt.Errorf("no root")
}

// above is the catalog in which a directory stands.
func (b *builder) above(dir string) *catalog {
	for d := dir; ; {
		d = path.Dir(d)
		if d == "/" {
			d = ""
		}
		if c := b.catalogs[d]; c != nil || d == "" {
			return c
		}
	}
}

// put writes one file.
func (b *builder) put(name string, f File) error {
	if name == "" || f.Nested {
		c, err := b.open(name)
		if err != nil {
			return err
		}
		inside := f
		inside.Nested, inside.Dir = false, true
		if name != "" {
			inside.Flags |= flagNestedRoot
		}
		if err := b.row(c, name, inside); err != nil || name == "" {
			return err
		}
		f.Flags |= flagNested
	}
	c := b.above(name)
	if f.Bind != "" {
		f.Flags |= flagBind
		if err := c.nest("bind_mountpoints", name, f.Bind, 0); err != nil {
			return err
		}
	}
	return b.row(c, name, f)
}

// row writes a file's content and its row in the catalog.
func (b *builder) row(c *catalog, name string, f File) error {
	flags, mode, sum := f.Flags|f.Hash.bits(), int64(f.Mode), any(nil)
	if f.Plain {
		flags |= flagPlain
	}
	size := int64(len(f.Content))
	switch {
	case f.Dir || f.Nested || f.Bind != "" || flags&flagNested != 0:
		mode, flags, size = orMode(mode, 0o755)|0o40000, flags|flagDir, 4096
		c.stats["dir"]++
	case f.Link != "":
		mode, flags = 0o120777, flags|flagLink
		c.stats["symlink"]++
	default:
		mode, flags = orMode(mode, 0o644)|0o100000, flags|flagFile
		c.stats["regular"]++
		c.stats["file_size"] += size
		var err error
		if len(f.Chunks) > 0 {
			flags |= flagChunked
			err = b.chunks(c, name, f)
		} else if sum, err = b.content(f); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	when := f.Time
	if when.IsZero() {
		when = time.Unix(1_400_000_000, 0)
	}
	if f.Size != 0 {
		size = f.Size
	}
	one, two := key(name)
	pone, ptwo := int64(0), int64(0)
	if name != "" {
		pone, ptwo = key(strings.TrimSuffix(path.Dir(name), "/"))
	}
	values := []any{one, two, pone, ptwo, int64(f.Group)<<32 | int64(max(f.Links, 1)), sum, size, mode, when.Unix(), flags,
		name[strings.LastIndex(name, "/")+1:], f.Link, 0, 0}
	if b.p.Schema >= 7 {
		values = append(values, when.Nanosecond())
	}
	_, err := c.add.Exec(values...)
	return err
}

func orMode(mode, fallback int64) int64 {
	if mode == 0 {
		return fallback
	}
	return mode
}

// content writes a file's object and returns its hash.
func (b *builder) content(f File) (any, error) {
	text := f.Sum
	if text == "" {
		var err error
		if text, err = b.p.Put(f.Content, f.Hash, f.Plain, ""); err != nil {
			return nil, err
		}
	}
	return hex.DecodeString(text[:40])
}

// chunks writes a file's pieces.
func (b *builder) chunks(c *catalog, name string, f File) error {
	one, two := key(name)
	rest, sizes, off := f.Content, f.Chunks, 0
	for len(rest) > 0 {
		n := min(sizes[0], len(rest))
		if len(sizes) > 1 {
			sizes = sizes[1:]
		}
		sum, err := b.p.Put(rest[:n], f.Hash, f.Plain, "P")
		if err != nil {
			return err
		}
		raw, _ := hex.DecodeString(sum[:40])
		if _, err := c.tx.Exec("INSERT INTO chunks VALUES (?,?,?,?,?)", one, two, off, n, raw); err != nil {
			return err
		}
		rest, off = rest[n:], off+n
	}
	return nil
}

// key is the MD5 of a path in two halves.
func key(name string) (int64, int64) {
	sum := md5.Sum([]byte(name))
	return int64(binary.LittleEndian.Uint64(sum[:])), int64(binary.LittleEndian.Uint64(sum[8:]))
}

// open begins a catalog.
func (b *builder) open(mount string) (*catalog, error) {
	c := &catalog{mount: mount, file: filepath.Join(b.dir, fmt.Sprint(len(b.catalogs))), stats: make(map[string]int64)}
	var err error
	if c.db, err = sql.Open("sqlite", c.file); err != nil {
		return nil, err
	}
	extra, nested := "", "path TEXT, sha1 TEXT, CONSTRAINT pk PRIMARY KEY (path)"
	if b.p.Schema >= 7 {
		extra = ", mtimens INTEGER"
	}
	if b.p.Schema >= 1 {
		nested = "path TEXT, sha1 TEXT, size INTEGER, CONSTRAINT pk PRIMARY KEY (path)"
	}
	script := `CREATE TABLE catalog (md5path_1 INTEGER, md5path_2 INTEGER, parent_1 INTEGER, parent_2 INTEGER,
 hardlinks INTEGER, hash BLOB, size INTEGER, mode INTEGER, mtime INTEGER, flags INTEGER, name TEXT, symlink TEXT,
 uid INTEGER, gid INTEGER` + extra + `, CONSTRAINT pk_catalog PRIMARY KEY (md5path_1, md5path_2));
CREATE INDEX idx_catalog_parent ON catalog (parent_1, parent_2);
CREATE TABLE chunks (md5path_1 INTEGER, md5path_2 INTEGER, offset INTEGER, size INTEGER, hash BLOB,
 CONSTRAINT pk_chunks PRIMARY KEY (md5path_1, md5path_2, offset, size));
CREATE TABLE nested_catalogs (` + nested + `);
CREATE TABLE statistics (counter TEXT, value INTEGER, CONSTRAINT pk_statistics PRIMARY KEY (counter));
CREATE TABLE properties (key TEXT, value TEXT, CONSTRAINT pk_properties PRIMARY KEY (key));
INSERT INTO properties VALUES ('schema', '2.5');`
	if b.p.Schema >= 1 {
		script += fmt.Sprintf("INSERT INTO properties VALUES ('schema_revision', '%d');", b.p.Schema)
	}
	if b.p.Schema >= 4 {
		script += "CREATE TABLE bind_mountpoints (path TEXT, sha1 TEXT, size INTEGER, CONSTRAINT pk PRIMARY KEY (path));"
	}
	if mount != "" {
		script += "INSERT INTO properties VALUES ('root_prefix', '" + strings.ReplaceAll(mount, "'", "''") + "');"
	}
	if _, err := c.db.Exec(script); err != nil {
		return nil, err
	}
	if c.tx, err = c.db.Begin(); err != nil {
		return nil, err
	}
	marks := strings.Repeat("?,", 14)
	if b.p.Schema >= 7 {
		marks += "?,"
	}
	c.add, err = c.tx.Prepare("INSERT INTO catalog VALUES (" + strings.TrimSuffix(marks, ",") + ")")
	b.catalogs[mount] = c
	return c, err
}

// nest records a catalog below this one.
func (c *catalog) nest(table, mount, sum string, size int64) error {
	_, err := c.tx.Exec("INSERT INTO "+table+" (path, sha1) VALUES (?,?)", mount, sum)
	if err == nil && size != 0 {
		_, err = c.tx.Exec("UPDATE "+table+" SET size = ? WHERE path = ?", size, mount)
	}
	return err
}

// finish writes a catalog's object.
func (b *builder) finish(c *catalog) (string, int64, error) {
	defer c.db.Close()
	for _, counter := range slices.Sorted(maps.Keys(c.stats)) { // the same files make the same catalog
		if _, err := c.tx.Exec("INSERT INTO statistics VALUES (?, ?)", "self_"+counter, c.stats[counter]); err != nil {
			return "", 0, err
		}
	}
	if err := c.tx.Commit(); err != nil {
		return "", 0, err
	}
	if err := c.db.Close(); err != nil {
		return "", 0, err
	}
	content, err := os.ReadFile(c.file)
	if err != nil {
		return "", 0, err
	}
	sum, err := b.p.Put(content, "", false, "C")
	size := int64(len(content))
	if b.p.Schema < 1 {
		size = 0
	}
	return sum, size, err
}
