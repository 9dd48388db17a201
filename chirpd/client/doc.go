// Package client speaks Chirp to one server: the real chirp_server as well as
// ours.
//
// What is guaranteed
//
//   - Calls never hang: one whose connection makes no progress for Options.Stall
//     loses it, and one that waits for a server that is away fails after
//     Options.Timeout. A context that ends frees its caller at once.
//   - Nothing that changes the server runs twice blindly. See Replays.
//   - A reply never lands in another call, nor in memory that a caller has got back.
//   - An open file is the same file after a reconnect (device, inode, kind), or
//     its calls fail with ESTALE.
//   - Errors are *wire.Error: the command, the path as chirp://host:port/path, the
//     code and the cause; wire.ErrnoFor gives the errno. Codes nobody knows are EIO.
//
// # Connections
//
// A Client has one connection for calls on paths, Options.Conns for open files, one
// for small whole files, and some, each lent to one call at a time, for what
// takes long (Getfile, Putfile, Hash, Rmall, ReadDir). Each is made at the first call
// that needs it, is let go when idle, and comes back at the next call. While files
// are open on it, it is kept alive by a cheap request now and then, as a plain
// server drops an idle client with its files after 60 s.
//
// Requests are pipelined: calls on one connection are sent without waiting and
// answered in order. Connections are not ordered among themselves: whoever wants
// a Stat to see a Pwrite awaits the Pwrite first.
//
// # Buffers
//
// What is given to a Start method belongs to the Call until its Done is closed,
// even when Wait returned early: Chirp has no cancel, and the late reply fills it.
// The buffers of the methods that wait are the caller's again when they return,
// even early.
//
// # Replays
//
// When a connection is lost, a call whose request provably did not leave this host
// is sent on the next one, and so is one that only reads. Of the others, whose
// request may have been executed,
//
//   - Pwrite at an offset, and an Open that may create but neither truncates nor is
//     exclusive, are sent again if the server itself ended the connection, a second
//     later, when it has surely finished what it was at work on. After a stall or
//     a time-out on the network they are not, as the server may wake up and run the
//     first copy after newer requests.
//   - a Pwrite moreover is not sent again while another File of this Client writes
//     to the same file, as it could overtake that one's data. The writes of one
//     File are sent again in their order, before anything newer.
//   - everything else that changes something (Mkdir, Rename, Unlink, Truncate,
//     Setacl, Putfile, an Open that truncates, a Pwrite that appends, ...) is never
//     sent again.
//
// A call that is not sent again fails with EIO and says that its outcome is unknown.
//
// # Limits
//
// "Surely" above is a second's grace: that a connection was ended by something on
// the way, while the server had read a write and did not get round to it for longer
// than that, cannot be seen on the plain protocol.
//
// A server process that is killed loses nothing that it acknowledged, since the
// kernel of its host has it. The plain protocol cannot tell that the host itself
// went down, and took along what was acknowledged but not yet on disk: this
// package notices only when the file became shorter than what it wrote since the
// last Fsync, which is ESTALE. An open file that was unlinked, or replaced by
// somebody else's rename, is lost with its connection (ESTALE).
//
// Listings are raw lines on the plain wire: a name that holds an empty line cannot
// be told from the end of the listing.
package client
