// Package run is what a job script executes on the node: it brings the application,
// mounts the data, runs the application, and takes everything away again.
//
// # What it guarantees
//
// The application gets exactly the arguments of the job file followed by those of
// the command line, the descriptors 0, 1 and 2 of the job itself, and its exit code is
// the job's. Every other end has one of the codes in package job; success is never
// among them. Whatever goes wrong with data that the application wrote, until the
// server has it, makes the job fail ([job.ExitNotWritten]) although the application
// returned 0.
//
// The application does not start unless the ticket is for this server and has not
// ended, the archive is the one whose checksum the job names, and each of the job's
// directories has answered through the mount.
//
// Nothing is left on the node: no mount, no process and no file, whatever kills the
// job, SIGKILL included. Only when all of it is killed in the same instant (the whole
// process group, the node) a directory remains, without any mount or process; the
// next job of that user removes it. The ticket is never in a file, an argument or the
// environment, and the application cannot read it.
//
// # Where things are
//
// The scratch directory skeletonkey-job-UID-... lies in the first of
// $_CONDOR_SCRATCH_DIR, $OSG_WN_TMP, $TMPDIR and /tmp that exists and is writable,
// where nobody else can exchange what is in it, and, if an application is unpacked, where
// programs may be executed. The application is unpacked into its directory work, which
// is the working directory. Beside it lie the lock, the X.509 proxy and the archive
// while it is being unpacked, so that the application's names cannot meet ours.
//
// The data appears at /chirp/HOST:PORT/PATH, each directory of the job under its path
// in the export, in a private mount namespace (package private), and as a link in the
// working directory. There are no other directories of the server: the ticket opens
// nothing above those of the job. Directories which lie in one another are one file
// system; between others, files can be moved but not linked. Where that place cannot
// be had the same tree lies in the scratch directory; where there are no namespaces
// either, fusermount3 mounts it there. CHIRP_MOUNT always tells where.
//
// A CVMFS repository of the job is at /cvmfs/NAME: the machine's own, if it has one
// there that is not empty, else ours, read-only and in a namespace only. Ours keeps what
// it fetched, for all jobs of the user on this node, in the directory cvmfs of the place
// where the job script keeps the runtime; that stays. Where no such place can be had
// the cache lies in the scratch directory, and goes with it.
//
// # How it works
//
//	outer   calls Run; fetches, unpacks, cleans up
//	keeper  waits for the outer's end, and cleans up if the outer was killed
//	inner   serves the mounts, in the namespace; see package private
//
// All are this program; Hidden tells them apart. A scratch directory belongs to a
// live job for as long as its lock is held, by the outer alone. The keeper is told the
// directory's name before it is made. What an application's processes have in common,
// SKELETONKEY_SCRATCH in their environment, lets the keeper find those that a killed
// job left where there is no PID namespace.
//
// # Signals
//
// In the run they go to the application. Before it runs HUP, INT, QUIT and TERM end the
// job with 128 and the signal's number, others wait for the application. Afterwards,
// while data is written back, none has an effect.
//
// # Limits
//
// Root's application can do what root can, to the job as well. Without a PID namespace
// it can look into our processes as any program of the same user can, unless the kernel
// forbids that (kernel.yama.ptrace_scope). On file systems without locks dead jobs'
// directories are not swept.
package run
