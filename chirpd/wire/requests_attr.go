package wire

// attrRequests are the commands on attributes, sums and identity.
var attrRequests = []func() Request{
	of[Getxattr],
	of[Fgetxattr],
	of[Lgetxattr],
	of[Listxattr],
	of[Flistxattr],
	of[Llistxattr],
	of[Setxattr],
	of[Fsetxattr],
	of[Lsetxattr],
	of[Removexattr],
	of[Fremovexattr],
	of[Lremovexattr],
	of[MD5],
	of[Hash],
	of[Setrep],
	of[Whoami],
	of[Whoareyou],
}

// Getxattr asks for an extended attribute; the reply is a length, then the value.
type Getxattr struct {
	Path string
	Name string
}

// Command is "getxattr".
func (*Getxattr) Command() string { return "getxattr" }

func (r *Getxattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
}

// Fgetxattr is Getxattr of a descriptor.
type Fgetxattr struct {
	FD   int64
	Name string
}

// Command is "fgetxattr".
func (*Fgetxattr) Command() string { return "fgetxattr" }

func (r *Fgetxattr) words(c *coder) {
	c.num("fd", &r.FD)
	c.word("attribute", &r.Name)
}

// Lgetxattr is Getxattr of a link itself.
type Lgetxattr struct {
	Path string
	Name string
}

// Command is "lgetxattr".
func (*Lgetxattr) Command() string { return "lgetxattr" }

func (r *Lgetxattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
}

// Listxattr asks for the attributes' names, each ended by NUL, after their length.
type Listxattr struct {
	Path string
}

// Command is "listxattr".
func (*Listxattr) Command() string { return "listxattr" }

func (r *Listxattr) words(c *coder) { c.path("path", &r.Path) }

// Flistxattr is Listxattr of a descriptor.
type Flistxattr struct {
	FD int64
}

// Command is "flistxattr".
func (*Flistxattr) Command() string { return "flistxattr" }

func (r *Flistxattr) words(c *coder) { c.num("fd", &r.FD) }

// Llistxattr is Listxattr of a link itself.
type Llistxattr struct {
	Path string
}

// Command is "llistxattr".
func (*Llistxattr) Command() string { return "llistxattr" }

func (r *Llistxattr) words(c *coder) { c.path("path", &r.Path) }

// Setxattr sets an attribute to the Length bytes that follow; Flags are those of
// setxattr(2).
type Setxattr struct {
	Path   string
	Name   string
	Length int64
	Flags  int64
}

// Command is "setxattr".
func (*Setxattr) Command() string { return "setxattr" }

// DataLength is the length of the data that follows, in bytes.
func (r *Setxattr) DataLength() int64 { return r.Length }

func (r *Setxattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
	c.size("length", &r.Length)
	c.num("flags", &r.Flags)
}

// Fsetxattr is Setxattr of a descriptor.
type Fsetxattr struct {
	FD     int64
	Name   string
	Length int64
	Flags  int64
}

// Command is "fsetxattr".
func (*Fsetxattr) Command() string { return "fsetxattr" }

// DataLength is the length of the data that follows, in bytes.
func (r *Fsetxattr) DataLength() int64 { return r.Length }

func (r *Fsetxattr) words(c *coder) {
	c.num("fd", &r.FD)
	c.word("attribute", &r.Name)
	c.size("length", &r.Length)
	c.num("flags", &r.Flags)
}

// Lsetxattr is Setxattr of a link itself.
type Lsetxattr struct {
	Path   string
	Name   string
	Length int64
	Flags  int64
}

// Command is "lsetxattr".
func (*Lsetxattr) Command() string { return "lsetxattr" }

// DataLength is the length of the data that follows, in bytes.
func (r *Lsetxattr) DataLength() int64 { return r.Length }

func (r *Lsetxattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
	c.size("length", &r.Length)
	c.num("flags", &r.Flags)
}

// Removexattr removes an attribute.
type Removexattr struct {
	Path string
	Name string
}

// Command is "removexattr".
func (*Removexattr) Command() string { return "removexattr" }

func (r *Removexattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
}

// Fremovexattr is Removexattr of a descriptor.
type Fremovexattr struct {
	FD   int64
	Name string
}

// Command is "fremovexattr".
func (*Fremovexattr) Command() string { return "fremovexattr" }

func (r *Fremovexattr) words(c *coder) {
	c.num("fd", &r.FD)
	c.word("attribute", &r.Name)
}

// Lremovexattr is Removexattr of a link itself.
type Lremovexattr struct {
	Path string
	Name string
}

// Command is "lremovexattr".
func (*Lremovexattr) Command() string { return "lremovexattr" }

func (r *Lremovexattr) words(c *coder) {
	c.path("path", &r.Path)
	c.word("attribute", &r.Name)
}

// MD5 asks for a file's MD5 sum; the reply is 16, then the raw digest.
type MD5 struct {
	Path string
}

// Command is "md5".
func (*MD5) Command() string { return "md5" }

func (r *MD5) words(c *coder) { c.path("path", &r.Path) }

// Hash asks for a file's sum; the reply is a length, then the raw digest.
type Hash struct {
	Algorithm string
	Path      string
}

// Command is "hash".
func (*Hash) Command() string { return "hash" }

func (r *Hash) words(c *coder) {
	c.word("algorithm", &r.Algorithm)
	c.path("path", &r.Path)
}

// Setrep sets a number of replicas; accepted without effect.
type Setrep struct {
	Path  string
	Count int64
}

// Command is "setrep".
func (*Setrep) Command() string { return "setrep" }

func (r *Setrep) words(c *coder) {
	c.path("path", &r.Path)
	c.num("count", &r.Count)
}

// Whoami asks for the client's subject; the reply is a length, then the text.
type Whoami struct {
	Length int64
}

// Command is "whoami".
func (*Whoami) Command() string { return "whoami" }

func (r *Whoami) words(c *coder) { c.size("length", &r.Length) }

// Whoareyou asks for the server's subject at another host.
type Whoareyou struct {
	Host   string
	Length int64
}

// Command is "whoareyou".
func (*Whoareyou) Command() string { return "whoareyou" }

func (r *Whoareyou) words(c *coder) {
	c.word("host", &r.Host)
	c.size("length", &r.Length)
}
