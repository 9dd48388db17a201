// Package cvmfs shows a CernVM-FS (CVMFS) repository as a read-only file system, out
// of any process that may mount: no other program, no daemon and no setting of the
// machine is needed. [Open] finds and verifies the newest revision, [Repository.Mount]
// shows it; [HostMounted] tells whether the machine shows it already.
//
// # What it guarantees
//
// Trust. Only what the owner of a given public key vouches for is shown. The key signs
// the white-list (.cvmfswhitelist), which has the repository's name, an expiry, and the
// fingerprints of certificates; the certificate signs the manifest (.cvmfspublished),
// which has the name and the hash of the root catalog; catalogs have the hashes of
// nested catalogs, of files and of their chunks. Each hash (SHA-1, RIPEMD-160 or
// SHAKE128) is checked over what came from the network, compressed as it is, before any
// byte of it can be read; a stream that swells beyond the size in the catalog is cut.
// What fails is asked for once more past the caches of proxies, then of the other
// servers, and is an error in the end: ErrUntrusted, ErrExpired, ErrCorrupt; EIO and a
// line in the log for who reads the file. A white-list that expired is never used. A
// server cannot go back to an older revision than this cache has seen.
//
// One revision. A Repository is the newest revision at the time of Open for as long as
// it is open: a job sees one state of its software, and the kernel may keep what it
// read for as long as it likes.
//
// Each object once. It is asked for once by all processes of one user on a node
// together, however many want it, and never while the cache has it. A job that finds
// everything in the cache makes one request: for the manifest. The white-list is
// fetched together with a manifest that is new, so that a certificate taken off it is
// not trusted any longer; otherwise the cached one serves until it expires.
//
// Offline. When no server can be reached, the manifest seen last is used for as long as
// the white-list that vouches for it holds, longer than the manifest's time to live
// (which says only when to look for a newer one). What the cache lacks is then EIO.
//
// Many at a time. Up to 48 objects are fetched before they are asked for, besides those
// that somebody waits for: the small files (up to 256 KiB) that come after the one that
// is opened, when a listed directory is read in order, on into the next directories
// when the reader walks the tree; and up to 64 MiB of a chunked file that is read in
// sequence.
//
// # The cache
//
// It is a directory with mode 0700, of one user, for all repositories; it is held by a
// descriptor, so that nobody can put another one in its place later. Objects are stored
// without compression, and their names are their hashes. A name appears by a rename,
// complete; whoever writes the temporary file holds a lock on it (flock), which a kill
// at any moment gives back: the next one begins anew, and [Open] sweeps what is left.
// Where there are no locks, or their holder makes no progress, an object may be fetched
// twice; it is never mixed.
//
// The hash is checked when an object comes. What is in the cache is checked again by
// each process when it opens the object for the first time, against a trailer with the
// object's name, its length and a CRC-32C: against bad disks and machines that crashed,
// for the files are not synced. It is no check against the user himself, who owns them.
// Manifest and white-list in the cache are verified with the keys each time.
//
// The quota (quota_limit, 4000 MB unless told) is kept by removing what was not used
// for longest (times of use are kept to ten minutes), until three quarters are left. It
// may be exceeded by what comes meanwhile. Files that are open stay readable. When the disk is
// full, half of the cache is given up; ENOSPC comes after that.
//
// # Servers and proxies
//
// Servers are used in the order given, proxies by groups: inside a group each path has
// its proxy, chosen by a hash, and so all have the same share. What does not answer,
// breaks off, sends less than 1 KiB/s for the timeout (5 s with a proxy, 10 s without),
// or answers with an error is passed over and tried last for two minutes; all ways are
// tried three times, with pauses, before a request fails. An object that one server does not have
// is asked for at the next. The environment (http_proxy) has no say.
//
// # The file system
//
// Nested catalogs (and bind mount points) are loaded when something below them is
// looked at; 48 catalogs are open at a time. Hard links have one inode number.
// $(NAME) and $(NAME:-default) in symbolic links are expanded from Config.Variables. Owners
// are the process's, unless Config.ShowOwner; everybody who may use the mount may read
// everything. Modes and times are those of the catalog, set-user-ID bits have no effect.
// The attributes user.hash, user.revision, user.root_hash and user.fqrn can be read and
// are not listed.
//
// # Limits
//
// Linux, and catalogs of schema 2.4 and 2.5 (since 2012). Not supported: white-lists
// that ask for certificate authorities (pkcs7), black-lists, external files (EIO),
// extended attributes that are stored in catalogs, tags and dates instead of the newest
// revision, the order of servers by distance, automatic proxies, authorization (VOMS).
// Certificates are trusted for being on the white-list: their own dates do not count,
// as with CernVM-FS itself. A file that is one object comes as a whole before its first
// byte can be read.
package cvmfs
