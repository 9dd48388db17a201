// Package auth is the authentication that opens every Chirp connection, both
// sides of each method, and the tickets by which jobs prove themselves.
//
// The client names a method on a line; the server answers `no`, or `yes` and runs
// the method. After a method has succeeded the server sends `yes`, the method's
// name and the subject's name, each on a line. After one has failed both are back
// where they began.
//
// What is guaranteed
//
//   - A server takes the answer to a unix challenge only when it is a new, empty,
//     singly linked regular file of an unguessable name in its own directory.
//   - A client makes that file only in the directory that it agreed to, under a
//     name of the agreed form, and never follows or opens what is there already.
//   - A ticket signs challenges only for the server that it was made for, so that
//     another server cannot pass on that server's challenge.
//   - A host's name counts only when the name leads back to the address.
//
// What is not: hostname and address let in every user of the machines they name,
// and unix is offered to other machines only when asked for, as a hostile server
// on one of them could pass on a challenge of a third. Where the file system tells no
// times of birth, an older file passes for a new one: do not make empty files in
// directories of people who must not be taken for you.
//
// The functions block on the connection. They honour a context only between
// messages: the caller sets the connection's deadline, or closes it, to end them.
package auth
