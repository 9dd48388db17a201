// Package confine gives access to one exported directory tree through a
// directory descriptor, so that nothing a client names leads out of it.
//
// # Guarantee
//
// Whatever paths are asked for, and whoever swaps directories and symbolic
// links meanwhile, no call reads, writes, creates, lists or removes anything
// outside the tree that [Open] was given. What was checked is what is used: an
// [At] holds the containing directory open, its private files (the ACL) are read
// through that very descriptor, and the object is opened through it without
// following a link. To the callers of this package:
//
//   - a path counts from the export's root, with or without a leading slash;
//     doubled and trailing slashes and "." count for nothing, ".." is the real
//     parent directory and never leads above the root;
//   - a link's target that begins with a slash counts from the export's root;
//     more than 40 links in one walk are ELOOP;
//   - a name that begins with ".__" is refused with [ErrPrivate] wherever it
//     stands, in paths and in links' targets, and is never listed; only the
//     methods whose names end in Private reach such files;
//   - nothing blocks on a FIFO, and devices, sockets and FIFOs are not opened;
//   - set-user-id and set-group-id bits are never given to a file, and extended
//     attributes outside "user." are neither shown nor set: both would hand the
//     server's identity to whoever runs the file;
//   - modes are set as asked for; the process's umask does not take part;
//   - a root opened read-only refuses every change with EROFS.
//
// # How it is used
//
// A server walks, checks, acts and closes:
//
//	err := root.Do(path, true, func(a *confine.At) error {
//		if err := allowed(a); err != nil { // reads a.ReadPrivate(".__acl", ...)
//			return err
//		}
//		info, err = a.Stat()
//		return err
//	})
//
// An At names an object by its containing directory; a check that concerns the
// directory itself (listing it, its own ACL) goes through [At.Enter], which opens
// it and gives an At inside. [At.Nearest] finds an ancestor's private file.
//
// Errors are [*fs.PathError] or [*os.LinkError] with the path as the client sees
// it and a [syscall.Errno] inside: errors.Is(err, unix.ENOENT) and errors.As with
// a syscall.Errno both work, for this package's own errors too.
//
// # Limits
//
// Mounts below the root belong to the tree. A directory that somebody with access
// to the machine moves out of the tree while an At holds it open stays reachable
// through that At. Two file systems give a file names that nobody wrote: the short
// names of vfat, and directories that fold case by ignoring invisible letters;
// do not export those to clients who should not administer them. Extended
// attributes, and permissions before Linux 6.6, need /proc. A server that is killed may
// leave names that begin with ".__" behind; they go with the directory.
package confine
