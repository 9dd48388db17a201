// Package installer brings software onto a node: it fetches files, unpacks
// archives and publishes the result in one step. It also makes archives and
// directories of releases, finds the newest there, installs it and goes back.
//
// # Guarantees
//
// A name that Fetch, UnpackTo, Publish or Replace is asked to make appears only
// when what it stands for is complete and verified, by one rename in the
// directory where it belongs. On failure or cancellation nothing is left behind:
// no temporary file, no half tree, no goroutine.
//
// Nothing that an archive says makes Unpack touch anything outside the
// destination, also when the destination already holds another archive's files,
// or when somebody exchanges directories for symbolic links meanwhile. Every
// parent directory is reached by a descriptor below the destination's own, with
// no symbolic link followed; files are created exclusively, so that an existing
// one is replaced, never written through. Refused are absolute names, names with
// "..", links that lead outside, devices, FIFOs and sockets; set-user-ID,
// set-group-ID and sticky bits are dropped, modes are masked by the umask.
// Owners, ACLs and extended attributes (file capabilities among them) are not
// restored. What comes out depends only on the archive and the options: the same
// archive twice gives the same tree.
//
// A cut, damaged or padded input is never taken for a whole one: the end of a
// transfer, of the compression and of the archive are each checked, and whatever
// follows the archive must be zero bytes or another archive.
//
// Memory stays below 256 MiB whatever the input: dictionaries and windows of the
// decompressors are capped (see MaxDictionary and MaxWindow), and so is
// everything else that grows with the input.
//
// Pack gives the same bytes for the same content. UpdateRepository changes no
// release that was published unless told to. Resolve, given a key, believes nothing but what the
// key signed; the version that Install or Rollback found in use stays in use until
// the other one is there, verified, and one rename makes it current: a kill at any
// moment leaves the one or the other.
//
// # Limits
//
// Linux only. A directory of the destination is never replaced by anything else,
// and a symbolic link in the place of a parent directory is an error, not
// followed. A symbolic link may not be absolute and must stay inside; where its
// target has ".." after a name, that name must be a directory when the archive
// ends. A kill that cannot be caught leaves temporary names that begin with a dot
// and end in ".part", beside the final name; Install and Rollback remove theirs at
// the next call. Xz streams may use LZMA2 only.
// Sparse files are written sparsely, but count with their full size.
package installer
