// Package private runs a command in a mount namespace of its own, in which
// file systems are served by this very program.
//
// # What it guarantees
//
// The command sees the machine as it is, and in addition each [Mount] at its
// place, even where that place (/chirp/HOST:PORT) does not exist. It has the
// descriptors 0, 1 and 2 of the caller themselves, no other, the caller's
// identity, working directory and process group, and no capability that the
// caller lacked.
//
// Nothing is left behind. Mounts live in the namespace and vanish with it;
// when the command ends, every process that it left is killed; whatever kills
// the process that called [Run] (SIGKILL included) kills all the rest, and
// when the process that serves the file systems dies, Run reports a failure
// ([ErrDied]), never success. When a file system cannot write back what the
// command wrote, Run returns an error although the command returned 0.
//
// # How it works
//
// Three processes take part, all of them this program:
//
//	outer  calls Run; the one that a shell or a batch system knows
//	inner  runs Main: makes the namespaces, serves the file systems, reaps
//	app    first a launcher, which drops capabilities and then becomes the
//	       command by exec
//
// The inner is /proc/self/exe again, started with CLONE_NEWNS and CLONE_NEWPID
// and, where the caller may not mount, CLONE_NEWUSER with each identity mapped
// to itself. What it has to do, secrets included, comes to it through an
// inherited memory file, never through arguments or the environment, and the
// command cannot read it: the inner has capabilities that the command lacks.
// (Of a caller who is root no secret can be kept.)
//
// The inner makes a tmpfs, moves the root there (pivot_root), and binds every
// top-level entry of the old root into it, with all that is mounted below and
// as slaves, so that file systems which are mounted later (automounted homes,
// /cvmfs) still appear. Top-level symbolic links are made again. The new root
// is read-only; a directory that somebody makes at the old top level later is
// not seen. Where pivot_root is refused (an initramfs, a chroot, some
// containers) the mounts are made in place, and their places must exist. In a
// chroot into a directory that is no mount point nothing could keep mounts from
// showing outside: there Run refuses.
//
// The launcher exists because a Go process must not exec a program that it
// serves itself: until the exec is done no garbage collection can finish, and
// until the file system answers the exec cannot.
//
// # Signals
//
// What arrives on the channel given to Run is passed to the command, once. A
// signal that the whole process group got (Ctrl-C on a terminal, kill -- -PGID)
// has reached the command already; the inner, a member of the group as well,
// sees that it got one itself and does not repeat it. A signal to the outer
// alone is therefore held back for a tenth of a second. (It is the safest that
// can be had: a process that starves for longer can take the one for the other.)
// Before the command has started, HUP, INT, QUIT and TERM end the preparations,
// others wait for it.
//
// # Limits
//
// Setuid and setgid programs and file capabilities have no effect for an
// ordinary user (sudo, ping with capabilities, su, fusermount3): in there only
// his own identity exists. Files of other owners appear as those of nobody
// (65534). Supplementary groups still give access but appear as 65534 too;
// chgrp to one of them fails, and setgroups is denied. Root stays root, with
// all capabilities that he had, and can harm the namespace (unmount a file
// system, for instance) and the machine.
//
// Without a PID namespace ([PIDNever], or where /proc cannot be mounted anew,
// as in many containers) remaining processes are found by parentage. When
// outer and inner are killed in the same instant, a process that has left
// both the process group and its parent survives, with dead mounts; and one
// that made yet another mount namespace survives the death of the inner alone.
// With a PID namespace nothing survives, but processes see only each other:
// MPI ranks that share memory by process number need PIDNever.
//
// A stopped outer (SIGSTOP to it alone) does not stop the command.
package private
