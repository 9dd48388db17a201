package wire

// dataRequests are the commands that move the content of files.
var dataRequests = []func() Request{
	of[Open],
	of[Close],
	of[Pread],
	of[Pwrite],
	of[Sread],
	of[Swrite],
	of[Read],
	of[Write],
	of[Lseek],
	of[Fstat],
	of[Fstatfs],
	of[Fsync],
	of[Ftruncate],
	of[Fchmod],
	of[Fchown],
	of[Getfile],
	of[Putfile],
	of[Getstream],
	of[Putstream],
}

// Open opens a file; the reply is a descriptor, then a stat line.
type Open struct {
	Path  string
	Flags OpenFlags
	Mode  int64
}

// Command is "open".
func (*Open) Command() string { return "open" }

func (r *Open) words(c *coder) {
	c.path("path", &r.Path)
	c.flags(&r.Flags)
	c.num("mode", &r.Mode)
}

// Close closes a descriptor.
type Close struct {
	FD int64
}

// Command is "close".
func (*Close) Command() string { return "close" }

func (r *Close) words(c *coder) { c.num("fd", &r.FD) }

// Pread reads up to Length bytes at Offset; the reply is the count, then the
// bytes. Only a count of zero is the end of the file.
type Pread struct {
	FD     int64
	Length int64
	Offset int64
}

// Command is "pread".
func (*Pread) Command() string { return "pread" }

func (r *Pread) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
	c.size("offset", &r.Offset)
}

// Pwrite writes the Length bytes that follow at Offset; the reply is the count.
type Pwrite struct {
	FD     int64
	Length int64
	Offset int64
}

// Command is "pwrite".
func (*Pwrite) Command() string { return "pwrite" }

// DataLength is the length of the data that follows, in bytes.
func (r *Pwrite) DataLength() int64 { return r.Length }

func (r *Pwrite) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
	c.size("offset", &r.Offset)
}

// Sread reads pieces of StrideLength bytes, each StrideSkip after the one
// before, Length bytes in all.
type Sread struct {
	FD           int64
	Length       int64
	StrideLength int64
	StrideSkip   int64
	Offset       int64
}

// Command is "sread".
func (*Sread) Command() string { return "sread" }

func (r *Sread) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
	c.size("stride length", &r.StrideLength)
	c.size("stride skip", &r.StrideSkip)
	c.size("offset", &r.Offset)
}

// Swrite writes the Length bytes that follow in pieces, as Sread reads.
type Swrite struct {
	FD           int64
	Length       int64
	StrideLength int64
	StrideSkip   int64
	Offset       int64
}

// Command is "swrite".
func (*Swrite) Command() string { return "swrite" }

// DataLength is the length of the data that follows, in bytes.
func (r *Swrite) DataLength() int64 { return r.Length }

func (r *Swrite) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
	c.size("stride length", &r.StrideLength)
	c.size("stride skip", &r.StrideSkip)
	c.size("offset", &r.Offset)
}

// Read reads at the descriptor's own offset, as the published manual has it.
type Read struct {
	FD     int64
	Length int64
}

// Command is "read".
func (*Read) Command() string { return "read" }

func (r *Read) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
}

// Write writes the Length bytes that follow at the descriptor's own offset.
type Write struct {
	FD     int64
	Length int64
}

// Command is "write".
func (*Write) Command() string { return "write" }

// DataLength is the length of the data that follows, in bytes.
func (r *Write) DataLength() int64 { return r.Length }

func (r *Write) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
}

// Lseek moves the descriptor's own offset; the reply is the new offset.
type Lseek struct {
	FD     int64
	Offset int64
	Whence int64
}

// Command is "lseek".
func (*Lseek) Command() string { return "lseek" }

func (r *Lseek) words(c *coder) {
	c.num("fd", &r.FD)
	c.num("offset", &r.Offset)
	c.num("whence", &r.Whence)
}

// Fstat asks for the stat line of a descriptor.
type Fstat struct {
	FD int64
}

// Command is "fstat".
func (*Fstat) Command() string { return "fstat" }

func (r *Fstat) words(c *coder) { c.num("fd", &r.FD) }

// Fstatfs asks for the statfs line of a descriptor.
type Fstatfs struct {
	FD int64
}

// Command is "fstatfs".
func (*Fstatfs) Command() string { return "fstatfs" }

func (r *Fstatfs) words(c *coder) { c.num("fd", &r.FD) }

// Fsync puts a file's data on disk before it is answered.
type Fsync struct {
	FD int64
}

// Command is "fsync".
func (*Fsync) Command() string { return "fsync" }

func (r *Fsync) words(c *coder) { c.num("fd", &r.FD) }

// Ftruncate sets the size of an open file.
type Ftruncate struct {
	FD     int64
	Length int64
}

// Command is "ftruncate".
func (*Ftruncate) Command() string { return "ftruncate" }

func (r *Ftruncate) words(c *coder) {
	c.num("fd", &r.FD)
	c.size("length", &r.Length)
}

// Fchmod sets the permissions of an open file.
type Fchmod struct {
	FD   int64
	Mode int64
}

// Command is "fchmod".
func (*Fchmod) Command() string { return "fchmod" }

func (r *Fchmod) words(c *coder) {
	c.num("fd", &r.FD)
	c.num("mode", &r.Mode)
}

// Fchown succeeds without effect.
type Fchown struct {
	FD  int64
	UID int64
	GID int64
}

// Command is "fchown".
func (*Fchown) Command() string { return "fchown" }

func (r *Fchown) words(c *coder) {
	c.num("fd", &r.FD)
	c.num("uid", &r.UID)
	c.num("gid", &r.GID)
}

// Getfile asks for a whole file; the reply is its size, then that many bytes.
type Getfile struct {
	Path string
}

// Command is "getfile".
func (*Getfile) Command() string { return "getfile" }

func (r *Getfile) words(c *coder) { c.path("path", &r.Path) }

// Putfile writes a whole file of Length bytes. The server answers 0, then the
// client sends the bytes, then the server answers their count.
type Putfile struct {
	Path   string
	Mode   int64
	Length int64
}

// Command is "putfile".
func (*Putfile) Command() string { return "putfile" }

func (r *Putfile) words(c *coder) {
	c.path("path", &r.Path)
	c.num("mode", &r.Mode)
	c.size("length", &r.Length)
}

// Getstream asks for a file to its end, which closes the connection.
type Getstream struct {
	Path string
}

// Command is "getstream".
func (*Getstream) Command() string { return "getstream" }

func (r *Getstream) words(c *coder) { c.path("path", &r.Path) }

// Putstream writes a file whose end closes the connection.
type Putstream struct {
	Path string
}

// Command is "putstream".
func (*Putstream) Command() string { return "putstream" }

func (r *Putstream) words(c *coder) { c.path("path", &r.Path) }
