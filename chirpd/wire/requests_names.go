package wire

// nameRequests are the commands that work on names and directories.
var nameRequests = []func() Request{
	of[StatPath],
	of[Lstat],
	of[Access],
	of[Unlink],
	of[Rmdir],
	of[Rmall],
	of[Mkdir],
	of[Rename],
	of[Link],
	of[Symlink],
	of[Readlink],
	of[Chmod],
	of[Chown],
	of[Lchown],
	of[Truncate],
	of[Utime],
	of[Getdir],
	of[Getlongdir],
	of[StatfsPath],
	of[Search],
	of[Audit],
	of[Localpath],
}

// StatPath asks for the stat line of a path, following links.
type StatPath struct {
	Path string
}

// Command is "stat".
func (*StatPath) Command() string { return "stat" }

func (r *StatPath) words(c *coder) { c.path("path", &r.Path) }

// Lstat asks for the stat line of a path; a link is not followed.
type Lstat struct {
	Path string
}

// Command is "lstat".
func (*Lstat) Command() string { return "lstat" }

func (r *Lstat) words(c *coder) { c.path("path", &r.Path) }

// Access asks whether Mode (4 read, 2 write, 1 execute, 0 exists) is allowed.
type Access struct {
	Path string
	Mode int64
}

// Command is "access".
func (*Access) Command() string { return "access" }

func (r *Access) words(c *coder) {
	c.path("path", &r.Path)
	c.num("mode", &r.Mode)
}

// Unlink removes a file or a link.
type Unlink struct {
	Path string
}

// Command is "unlink".
func (*Unlink) Command() string { return "unlink" }

func (r *Unlink) words(c *coder) { c.path("path", &r.Path) }

// Rmdir removes an empty directory.
type Rmdir struct {
	Path string
}

// Command is "rmdir".
func (*Rmdir) Command() string { return "rmdir" }

func (r *Rmdir) words(c *coder) { c.path("path", &r.Path) }

// Rmall removes a file or a whole directory.
type Rmall struct {
	Path string
}

// Command is "rmall".
func (*Rmall) Command() string { return "rmall" }

func (r *Rmall) words(c *coder) { c.path("path", &r.Path) }

// Mkdir makes a directory.
type Mkdir struct {
	Path string
	Mode int64
}

// Command is "mkdir".
func (*Mkdir) Command() string { return "mkdir" }

func (r *Mkdir) words(c *coder) {
	c.path("path", &r.Path)
	c.num("mode", &r.Mode)
}

// Rename moves Path to NewPath, replacing a file there.
type Rename struct {
	Path    string
	NewPath string
}

// Command is "rename".
func (*Rename) Command() string { return "rename" }

func (r *Rename) words(c *coder) {
	c.path("path", &r.Path)
	c.path("new path", &r.NewPath)
}

// Link makes NewPath a hard link to Path.
type Link struct {
	Path    string
	NewPath string
}

// Command is "link".
func (*Link) Command() string { return "link" }

func (r *Link) words(c *coder) {
	c.path("path", &r.Path)
	c.path("new path", &r.NewPath)
}

// Symlink makes NewPath a symbolic link with the content Target.
type Symlink struct {
	Target  string
	NewPath string
}

// Command is "symlink".
func (*Symlink) Command() string { return "symlink" }

func (r *Symlink) words(c *coder) {
	c.path("target", &r.Target)
	c.path("new path", &r.NewPath)
}

// Readlink asks for a link's target, at most Length bytes; the reply is the
// length, then the bytes.
type Readlink struct {
	Path   string
	Length int64
}

// Command is "readlink".
func (*Readlink) Command() string { return "readlink" }

func (r *Readlink) words(c *coder) {
	c.path("path", &r.Path)
	c.size("length", &r.Length)
}

// Chmod sets the permissions of a path.
type Chmod struct {
	Path string
	Mode int64
}

// Command is "chmod".
func (*Chmod) Command() string { return "chmod" }

func (r *Chmod) words(c *coder) {
	c.path("path", &r.Path)
	c.num("mode", &r.Mode)
}

// Chown succeeds without effect.
type Chown struct {
	Path string
	UID  int64
	GID  int64
}

// Command is "chown".
func (*Chown) Command() string { return "chown" }

func (r *Chown) words(c *coder) {
	c.path("path", &r.Path)
	c.num("uid", &r.UID)
	c.num("gid", &r.GID)
}

// Lchown succeeds without effect.
type Lchown struct {
	Path string
	UID  int64
	GID  int64
}

// Command is "lchown".
func (*Lchown) Command() string { return "lchown" }

func (r *Lchown) words(c *coder) {
	c.path("path", &r.Path)
	c.num("uid", &r.UID)
	c.num("gid", &r.GID)
}

// Truncate sets the size of a file.
type Truncate struct {
	Path   string
	Length int64
}

// Command is "truncate".
func (*Truncate) Command() string { return "truncate" }

func (r *Truncate) words(c *coder) {
	c.path("path", &r.Path)
	c.size("length", &r.Length)
}

// Utime sets access and modification times, in seconds since 1970.
type Utime struct {
	Path   string
	Actime int64
	Mtime  int64
}

// Command is "utime".
func (*Utime) Command() string { return "utime" }

func (r *Utime) words(c *coder) {
	c.path("path", &r.Path)
	c.num("access time", &r.Actime)
	c.num("modification time", &r.Mtime)
}

// Getdir lists a directory: 0, the names, a blank line.
type Getdir struct {
	Path string
}

// Command is "getdir".
func (*Getdir) Command() string { return "getdir" }

func (r *Getdir) words(c *coder) { c.path("path", &r.Path) }

// Getlongdir lists a directory with attributes: 0, then a name line and a stat line
// in turn, a blank line. `.` and `..` are in it.
type Getlongdir struct {
	Path string
}

// Command is "getlongdir".
func (*Getlongdir) Command() string { return "getlongdir" }

func (r *Getlongdir) words(c *coder) { c.path("path", &r.Path) }

// StatfsPath asks for the statfs line of a path.
type StatfsPath struct {
	Path string
}

// Command is "statfs".
func (*StatfsPath) Command() string { return "statfs" }

func (r *StatfsPath) words(c *coder) { c.path("path", &r.Path) }

// Search looks below the directories of Path (separated by |) for what matches one of the
// patterns of Pattern (separated by |; with a slash in front the whole path below the
// directory, otherwise its end): 0, lines `0:path:stat:` with an empty stat unless it was
// asked for, and `errno:1:path:` for what cannot be listed, and a blank line.
type Search struct {
	Pattern string
	Path    string
	Flags   int64
}

// Command is "search".
func (*Search) Command() string { return "search" }

func (r *Search) words(c *coder) {
	c.path("pattern", &r.Pattern)
	c.path("path", &r.Path)
	c.num("flags", &r.Flags)
}

// Audit counts files, directories and bytes by owner below a path: the number of owners,
// and for each a line `subject files directories bytes`.
type Audit struct {
	Path string
}

// Command is "audit".
func (*Audit) Command() string { return "audit" }

func (r *Audit) words(c *coder) { c.path("path", &r.Path) }

// Localpath asks where a path lies on the server's own disk.
type Localpath struct {
	Path string
}

// Command is "localpath".
func (*Localpath) Command() string { return "localpath" }

func (r *Localpath) words(c *coder) { c.path("path", &r.Path) }
