// Package generator turns a checked Job into one POSIX sh script: it asks the data server for a ticket
// and writes the script that brings the skeletonkey program to a node and hands the job over to it.
//
// Guarantee: the ticket has exactly the rights that the directories of the Job need, rl or rwld, each
// in its own directory, and ends when the Job says. (A server lists rwld as rwldp: w implies p.) The access list of a directory is touched only
// where the owner lacks a right that the job needs; then what is missing is added for that exact
// subject, and nothing is taken away. When something fails, the ticket is deleted on the server and
// no script is left; the script appears under its name only as a whole, with mode 0700.
//
// The script needs sh and one of curl, wget and python3. The program is used only when its SHA-256 is
// the one that was known when the script was written, and it lies where only the user can write. Job,
// ticket and X.509 proxy are handed over on descriptors of their own, never as arguments or in the
// environment; standard input is left to the application, every byte of it
// (where descriptor 0, 1 or 2 is closed, the application has /dev/null). The application's
// environment is left as it is, except that PATH is set where it was not. Until the program takes
// over, a signal ends the script at once, with 128 and its number, and nothing half fetched is left.
//
// Limits: a proxy that no_proxy excludes is recognised by names, not by networks (10.0.0.0/8). Shells
// that keep here-documents in files (mksh, zsh, older bash) hold the ticket for a moment in a file of
// mode 0600 in the directory for temporary files. A script killed outright (SIGKILL) ends its fetch a
// second later; when its whole process group is killed at once, the next job of that user sweeps what
// is left. posh and mksh can miss a signal that comes just as they begin to wait, and answer it when
// the fetch ends.
package generator
