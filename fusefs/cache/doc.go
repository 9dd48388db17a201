// Package cache holds what a mount remembers and what it has under way: values
// that are believed for a while, listings of directories, read-ahead of an open
// file and write-behind of an open file. It does no I/O of its own; reads and
// writes are started by functions that it is given.
//
// What it guarantees
//
//   - A Timed value is never handed out after its time.
//   - A Directory never answers from a listing for a name that changed here since
//     the listing was asked for.
//   - A Reader gives the bytes that the server had at some moment between the last
//     Invalidate of their range and the end of the Read. A short result is the end
//     of the file, never a short read.
//   - A Writer hands on the accepted bytes in the order in which they came, each
//     exactly once, holds no more than its limit, and reports each failed write. What
//     a short write left over follows later, or is a failed write where newer bytes
//     went to the same place.
//
// Limits: neither Reader nor Writer knows of the other, nor of a second open file
// on the same inode: whoever owns them awaits the writes before reading, and calls
// Invalidate after a write.
package cache
