package acl

import "strings"

// Mask limits a ticket in a directory and below.
type Mask struct {
	Dir    string
	Rights Rights
}

// Masks are those of one ticket.
type Masks []Mask

// For is the mask for a path, which is absolute and clean: that of the deepest directory
// that is the path itself or contains it, and no rights where there is none.
func (m Masks) For(path string) Rights {
	depth, r := -1, Rights(0)
	for _, mask := range m {
		dir := trimDir(mask.Dir)
		if contains(dir, trimDir(path)) && len(dir) > depth {
			depth, r = len(dir), mask.Rights
		}
	}
	return r
}

// Set gives the masks with that of a directory replaced. A mask of no rights is kept: it
// takes away what a directory above allows.
func (m Masks) Set(dir string, r Rights) Masks {
	set := make(Masks, 0, len(m)+1)
	for _, mask := range m {
		if trimDir(mask.Dir) != trimDir(dir) {
			set = append(set, mask)
		}
	}
	return append(set, Mask{Dir: dir, Rights: normal(r)})
}

// contains compares whole components: "/data" does not contain "/database".
func contains(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || rest[0] == '/')
}

// trimDir takes slashes off the end; the root becomes the empty string.
func trimDir(dir string) string { return strings.TrimRight(dir, "/") }
