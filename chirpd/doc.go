// Package chirpd serves directory trees over the Chirp protocol: listener,
// sessions, and one table of commands.
//
// # Guarantee
//
//   - Nothing outside the exported directories is read or changed (package confine),
//     no link leads from one of them into another, and
//     nothing inside them beyond what the ACLs give the client's subject; a ticket
//     gives its owner's rights and its own mask, never more, and a ticket that was
//     made by means of another one never more than that one. What was checked is
//     what is used: the ACL is read through the descriptor of the directory that
//     the object is then reached by.
//   - The stream stays in step: whatever a request's outcome, its data is read to
//     its end and one reply is sent. Where that cannot be promised (a file shrank
//     while it was sent, a request whose length is not known) the connection ends.
//     Bytes promised in a reply's header are the file's, never padding.
//   - Success is said only of what happened: fsync has the bytes on disk, putfile
//     has the whole file in place of the old one, a full disk is an error.
//   - One client cannot hold up another: each has a goroutine, a bounded buffer
//     and no lock while it waits for disk or network. A panic ends its connection
//     only.
//
// # Limits
//
// A client has the rights of its subject when a file is opened; later changes of
// an ACL or a ticket's mask do not reach open descriptors, but a ticket that
// expired (auth.Leeway after its time) or was deleted is refused everything from
// the next request on.
//
// Deleting a directory (rmall) needs the right d where the directory lies, and
// nothing in the directories below it, as in the real server; a ticket's masks below
// it do count.
//
// Modes are set as asked for, but set-user-id and set-group-id are never given to a
// file, and the server's own user may always enter and list a directory that a client
// made or changed: it has to read the ACL there. (The real server adds more of the
// owner's rights.)
//
// Names that hold a line feed are left out of listings, as lines cannot carry them.
// The commands on jobs are answered like unknown ones, INVALID_REQUEST.
//
// An allocation counts the lengths of files. What is in use is counted at the start,
// which takes the time that walking those trees takes, and then kept up by what goes
// through this server; what others change there counts from the next start on. Renames
// and links between allocations are CROSS_DEVICE_LINK; a directory that is one, or holds
// one, cannot be renamed (BUSY). Without allocations none of this costs anything.
//
// search follows links to directories, each directory once on the way down, and audit
// none; both count what they see while others change it. thirdput and whoareyou connect
// to whatever host the client names, as this server (Config.PeerMethods, Config.PeerDial).
//
// Who is in a group is believed for Config.GroupCache; a list that cannot be had has no
// members.
//
// # One request
//
// A session's goroutine reads a line and parses it (wire), runs the command's
// handler from the table in commands.go, reads what the handler left of the
// request's data, and writes the error's code if the handler gave an error. A
// handler goes through one of the checks in check.go to reach a file. Replies are
// collected and flushed just before a read that could block, so that pipelined
// requests get their replies together; large data leaves by sendfile. Looks at files of
// one directory that were read together share its descriptor and ACL (near.go).
package chirpd
