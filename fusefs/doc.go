// Package fusefs shows the export of a Chirp server as a file system: a read-write mount
// for ordinary programs.
//
// # What it guarantees
//
//   - Close-to-open: an open asks the server, so that what was closed on one machine
//     before is what is read after it on another. Names and attributes are believed for
//     a second (Options.TTL) without asking again, and those of a long listing a little
//     longer (50 microseconds for each entry). Changes made through the mount itself are
//     seen at once.
//   - A node is a file, whatever its names: hard links share an inode number, open files
//     survive rename, unlink and replacement, and what is open follows a directory that
//     is moved. An inode number that the server gives out again is another file.
//   - Data that was accepted is on its way, in order, and bounded (16 MiB for each open
//     file). When it does not get there, the next write says so once, and every fsync
//     and close of every descriptor that was open then says so each time: lost data does
//     not come back. What no write and no fsync could tell, because nobody asked, Close
//     does: a program that ends by itself does not look at what its closes say. Success
//     of fsync means that the server has put the data on its disk.
//   - Requests never wait longer than the client's time-outs. A signal that ends the
//     process ends its request at once, a handled one after two seconds, and never a
//     write, fsync or close that is under way.
//   - Errors are those of wire's one table, EIO where there is none.
//
// # Identity
//
// A node is known by (device, inode) of the export and a generation. A new generation
// begins when a file is made here, when the kind of file changes, when the last name was
// removed here, or when a file with a single name shows up under another one while no
// descriptor on the server holds it: file systems give an inode number out again at
// once. Paths are worked out from go-fuse's tree whenever one is needed; a rename keeps
// everybody else from doing so until tree and server agree.
//
// # Reading
//
// A file of up to 64 KiB, as far as is known, comes with its open, in one round trip. A
// larger one is opened; its first read asks for 256 KiB, and a reader that goes on finds
// 2 to 32 MiB under way, in blocks of 1 MiB. Other reads are asked for exactly. The
// kernel keeps its pages of a file across opens while size and times are what they were,
// and old enough that a second change would show: times are whole seconds.
//
// # Writing
//
// Small writes are put together while earlier ones are under way. Before a file is read,
// opened, closed by who wrote, described, renamed, linked, truncated or given times, what
// was written to it through any descriptor is awaited, and before a directory moves what
// was written below it: connections are not ordered among themselves. A read waits for
// what was written before it, not for what is written meanwhile.
//
// # Limits
//
//   - Locks of flock and fcntl hold among the processes of one machine that use the same
//     mount: the kernel keeps them, and the server is not told.
//   - Times are whole seconds, as the server tells them. Those of a symbolic link cannot
//     be set, which is not reported.
//   - Everything belongs to the user who mounts (Options.Owner); chown to anybody else is
//     EPERM. Who may do what is up to the server. Mode bits count only for executing.
//   - Rename without replacing is exact for files, made of link and unlink; for
//     directories and links somebody else may take the name in between. Exchanging is
//     EINVAL. There is no fallocate, and no file but regular ones, directories and
//     symbolic links can be made.
//   - Extended attributes are those in user., where the server has them. Others read as
//     missing and cannot be set.
//   - fsync of a directory succeeds: each change was acknowledged when it was made.
//   - A name that somebody replaces again and again may be opened as ESTALE when this
//     mount itself replaces it twice within one open.
//   - The process that serves a mount must not use it in ways that keep the Go runtime
//     from running: see go-fuse's package fs, Deadlocks.
package fusefs
