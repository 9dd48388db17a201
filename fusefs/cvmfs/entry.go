package cvmfs

import (
	"crypto/md5"
	"encoding/binary"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The flags of a catalog's entries.
const (
	flagDir         = 1
	flagNestedMount = 2 // the directory's content is in another catalog
	flagFile        = 4
	flagLink        = 8
	flagSpecial     = 16
	flagNestedRoot  = 32 // the same directory, in that catalog
	flagChunked     = 64
	flagExternal    = 128
	hashShift       = 8 // three bits: the content's hash
	zipShift        = 11
	flagBindMount   = 0x4000 // as flagNestedMount, of a catalog with another prefix
	flagHidden      = 0x8000
)

// entry is a file, a directory or a link, as a catalog has it.
type entry struct {
	name    string
	link    string // target of a symbolic link, with variables
	object  object // content of a regular file, when hashed
	hashed  bool
	size    int64
	mode    uint32 // with the kind
	flags   uint32
	mtime   time.Time
	uid     uint32
	gid     uint32
	links   uint32
	group   uint32 // of hard links; zero for none
	deviceN uint64 // of a device file
}

func (e *entry) kind() uint32   { return e.mode & unix.S_IFMT }
func (e *entry) isDir() bool    { return e.kind() == unix.S_IFDIR }
func (e *entry) chunked() bool  { return e.flags&flagChunked != 0 }
func (e *entry) external() bool { return e.flags&flagExternal != 0 }

// transition says whether what is below the directory is in another catalog.
func (e *entry) transition() bool {
	return e.isDir() && e.flags&(flagNestedMount|flagBindMount) != 0
}

// whole says whether the content is one object that can be fetched.
func (e *entry) whole() bool {
	return e.kind() == unix.S_IFREG && e.hashed && e.size > 0 && e.flags&(flagChunked|flagExternal) == 0
}

// want is what the content takes; only for a whole one.
func (e *entry) want() want { return want{object: e.object, size: e.size} }

// objectOf is the object with this hash, in a file with these flags. ok is false for
// what is no hash, and for algorithms that we do not know.
func objectOf(sum []byte, flags uint32) (o object, ok bool) {
	o = object{alg: algorithm(flags >> hashShift & 7), plain: flags>>zipShift&7 == 1}
	ok = len(sum) == hashSize && int(o.alg) < len(algorithmNames) && flags>>zipShift&7 <= 1
	copy(o.sum[:], sum)
	return o, ok
}

// usable reports whether a name that a catalog has can be an entry's.
func usable(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= unix.NAME_MAX && !strings.ContainsAny(name, "/\x00")
}

// pathKey is the two halves of a path's MD5, by which catalogs find it. A path begins
// with a slash; that of the root is empty.
func pathKey(path string) (one, two int64) {
	sum := md5.Sum([]byte(path))
	return int64(binary.LittleEndian.Uint64(sum[:8])), int64(binary.LittleEndian.Uint64(sum[8:]))
}

// inode is the number of what is at path, in the catalog mounted at mount: the hard
// links of a group have one.
func inode(path, mount string, e *entry) uint64 {
	if e.group != 0 {
		path = mount + "\x00" + string(binary.LittleEndian.AppendUint32(nil, e.group))
	}
	one, _ := pathKey(path)
	if n := uint64(one) &^ (1 << 63); n > 1 {
		return n
	}
	return 2
}

// expand replaces $(NAME) and $(NAME:-default) in a link's target by what value has
// for the name, else by the default, else by nothing.
func expand(target string, value map[string]string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(target, "$(")
		inner, after, closed := strings.Cut(rest, ")")
		if !found || !closed {
			out.WriteString(target)
			return out.String()
		}
		out.WriteString(before)
		name, fallback, _ := strings.Cut(inner, ":-")
		if v, ok := value[name]; ok {
			out.WriteString(v)
		} else {
			out.WriteString(fallback)
		}
		target = after
	}
}
