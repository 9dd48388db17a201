package wire

// rightsRequests are the commands on rights, tickets and space, and between
// servers.
var rightsRequests = []func() Request{
	of[Getacl],
	of[Setacl],
	of[Resetacl],
	of[TicketRegister],
	of[TicketModify],
	of[TicketGet],
	of[TicketList],
	of[TicketDelete],
	of[Mkalloc],
	of[Lsalloc],
	of[Thirdput],
}

// Getacl lists a directory's rights: 0, lines `subject rights`, a blank line.
type Getacl struct {
	Path string
}

// Command is "getacl".
func (*Getacl) Command() string { return "getacl" }

func (r *Getacl) words(c *coder) { c.path("path", &r.Path) }

// Setacl sets the rights of a subject in a directory; none at all removes it.
type Setacl struct {
	Path    string
	Subject string
	Rights  string
}

// Command is "setacl".
func (*Setacl) Command() string { return "setacl" }

func (r *Setacl) words(c *coder) {
	c.path("path", &r.Path)
	c.word("subject", &r.Subject)
	c.lastWord("rights", &r.Rights)
}

// Resetacl gives the caller Rights and removes every other entry.
type Resetacl struct {
	Path   string
	Rights string
}

// Command is "resetacl".
func (*Resetacl) Command() string { return "resetacl" }

func (r *Resetacl) words(c *coder) {
	c.path("path", &r.Path)
	c.word("rights", &r.Rights)
}

// TicketRegister registers the public key of Length bytes that follows (PEM) as a ticket
// of Subject (`self` for the caller) for Duration seconds.
type TicketRegister struct {
	Subject  string
	Duration int64
	Length   int64
}

// Command is "ticket_register".
func (*TicketRegister) Command() string { return "ticket_register" }

// DataLength is the length of the data that follows, in bytes.
func (r *TicketRegister) DataLength() int64 { return r.Length }

func (r *TicketRegister) words(c *coder) {
	c.word("subject", &r.Subject)
	c.size("duration", &r.Duration)
	c.size("length", &r.Length)
}

// TicketModify sets the mask of a ticket at a directory.
type TicketModify struct {
	Ticket string // `ticket:` and the digest
	Path   string
	Rights string
}

// Command is "ticket_modify".
func (*TicketModify) Command() string { return "ticket_modify" }

func (r *TicketModify) words(c *coder) {
	c.word("ticket", &r.Ticket)
	c.path("path", &r.Path)
	c.word("rights", &r.Rights)
}

// TicketGet asks for a ticket: 0, then subject and public key, each after its
// length, the seconds left, lines `path rights`, and 0.
type TicketGet struct {
	Ticket string // `ticket:` and the digest
}

// Command is "ticket_get".
func (*TicketGet) Command() string { return "ticket_get" }

func (r *TicketGet) words(c *coder) { c.word("ticket", &r.Ticket) }

// TicketList lists the tickets of a subject, of `self` or of `all`: 0, then a length
// and a name for each, and 0.
type TicketList struct {
	Subject string
}

// Command is "ticket_list".
func (*TicketList) Command() string { return "ticket_list" }

func (r *TicketList) words(c *coder) { c.word("subject", &r.Subject) }

// TicketDelete ends a ticket.
type TicketDelete struct {
	Ticket string // `ticket:` and the digest
}

// Command is "ticket_delete".
func (*TicketDelete) Command() string { return "ticket_delete" }

func (r *TicketDelete) words(c *coder) { c.word("ticket", &r.Ticket) }

// Mkalloc makes a directory with Size bytes of its own.
type Mkalloc struct {
	Path string
	Size int64
	Mode int64
}

// Command is "mkalloc".
func (*Mkalloc) Command() string { return "mkalloc" }

func (r *Mkalloc) words(c *coder) {
	c.path("path", &r.Path)
	c.size("size", &r.Size)
	c.num("mode", &r.Mode)
}

// Lsalloc asks for the allocation that holds a path: 0, then `path size inuse`.
type Lsalloc struct {
	Path string
}

// Command is "lsalloc".
func (*Lsalloc) Command() string { return "lsalloc" }

func (r *Lsalloc) words(c *coder) { c.path("path", &r.Path) }

// Thirdput lets the server send Path to NewPath on another server.
type Thirdput struct {
	Path    string
	Host    string
	NewPath string
}

// Command is "thirdput".
func (*Thirdput) Command() string { return "thirdput" }

func (r *Thirdput) words(c *coder) {
	c.path("path", &r.Path)
	c.word("host", &r.Host)
	c.path("new path", &r.NewPath)
}
