// Package wire is the Chirp protocol: its requests, stat lines, error codes,
// percent-encoded words and bounded lines, in one codec that both ends use. It
// does no I/O but reading lines, and knows nothing of rights or files.
//
// # Stream
//
// A client connects over TCP (port 9094 unless told), authenticates (package
// auth has that part of the stream), and then sends requests. It may send many
// without waiting; they are answered one at a time, in order, and replies carry
// no tags.
//
// A request is a line ended by LF: words separated by blanks, the first of them
// the command. Numbers are decimal, signed, of 64 bits. Some requests are
// followed by data whose length the line gives (WithData); putfile's data waits
// for a go-ahead. An empty line is ignored; a line of the single byte 0x04
// closes the connection. A reply begins with a line of one number: zero or
// positive for success, a Code otherwise. What follows it is said at each
// request's type.
//
// A line has at most MaxLine bytes. A longer one is drained to its LF and
// answered TooBig; an unknown command, or words that do not fit, are answered
// InvalidRequest. The stream stays in step in each case but one: a request whose
// data's length cannot be known (LostStepError) ends the connection.
//
// # Words
//
// A path is one word. Bytes up to and including the blank, `%`, `\`, `<`, `>`,
// `'`, `"` and all bytes above `z` are sent as `%XX`; a reader decodes once. Real
// clients send every byte above 127 as `%FF` and so cannot name such files; a
// reader cannot mend that. The server anchors a path at the export's root and
// collapses `.` and `..` (CleanPath). A symbolic link's target is encoded in the
// same way and is otherwise left alone. Subjects, attributes' names, algorithms
// and hosts are sent as they are, and so cannot hold blanks.
//
// Listings are raw lines: on the plain wire a name that holds a LF cannot be
// told from two names.
//
// # Sizes
//
// A read of more than MaxData is answered with at most MaxData; of a longer
// write the rest is drained, and the shorter count returned.
//
// # Errors
//
// meanings (code.go) is the one table between codes and errnos. An unknown code
// is EIO and an unknown errno is Unknown: never success, never ENOSYS.
//
// Source of the rules: the published manual of Chirp, and black-box runs against
// cctools 9.9 where the two differ.
package wire

// MaxData is the most that one read or write moves, in bytes.
const MaxData = 16 << 20

// DefaultPort is the TCP port of a Chirp server unless told otherwise.
const DefaultPort = 9094
