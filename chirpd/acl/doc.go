// Package acl reads Chirp's access control lists and decides what a subject may do.
// It does no I/O.
//
// # Guarantee
//
// Nothing is granted that the text does not say. A list that does not parse, in any
// line, gives an error and no list; the rights that a ticket's mask leaves are never
// more than those it was applied to; a pattern matches a subject as a whole, never a
// part of it (unix:bob is not unix:bobby, hostname:*.trusted.example is not
// hostname:eviltrusted.example); a directory /data does not contain /database.
// Lists are values: the methods that change one return a new list, so that a list can
// be shared by sessions.
//
// # Form
//
// A list is lines "subject rights", both without blanks, ending in LF or CR LF; blank
// lines count for nothing and the last line may lack its end. Rights are letters:
//
//	r read    w write, implies p    l list    d delete    a administer
//	x execute    p put: create new files only    n (or "-" or ".") none
//	v(...) reserve: mkdir makes a directory in which the maker has the rights in
//	       brackets; v and v() stand for v(rwlda)
//
// A "v" within the brackets lets the maker reserve in the same way below. The letters
// are written in the order of the real server: rwldpaxv(...).
//
// A subject "group:NAME" stands for the members of a group, where the caller of
// [ACL.ForMember] knows them.
//
// # Limits
//
// A subject is a method, a colon and a name, compared byte for byte, except that
// names of the method hostname match in either case of the ASCII letters. In a list,
// "*" stands for any bytes, also none, also "." and ":". A cut at the end of the last
// line's rights cannot be told from fewer rights.
package acl
