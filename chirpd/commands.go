package chirpd

import (
	"bytes"
	"strconv"

	"skeletonkey/chirpd/wire"
)

// handler answers one request. It replies by session's methods, or returns an error
// before it has replied, which the session then tells; a handler that does neither is
// answered 0. An error after the reply has begun ends the connection.
type handler func(*session, wire.Request) error

// on makes the handler of one type of request.
func on[R wire.Request](answer func(*session, R) error) handler {
	return func(s *session, r wire.Request) error { return answer(s, r.(R)) }
}

// commands is the table of all commands; a test holds it against wire.Commands.
var commands = map[string]handler{
	// Data: data.go, stride.go
	"open":      on((*session).open),
	"close":     on((*session).close),
	"pread":     on((*session).pread),
	"pwrite":    on((*session).pwrite),
	"sread":     on((*session).sread),
	"swrite":    on((*session).swrite),
	"read":      on((*session).read),
	"write":     on((*session).write),
	"lseek":     on((*session).lseek),
	"fstat":     on((*session).fstat),
	"fstatfs":   on((*session).fstatfs),
	"fsync":     on((*session).fsync),
	"ftruncate": on((*session).ftruncate),
	"fchmod":    on((*session).fchmod),
	"fchown":    on((*session).fchown),

	// Whole files: whole.go
	"getfile":   on((*session).getfile),
	"putfile":   on((*session).putfile),
	"getstream": on((*session).getstream),
	"putstream": on((*session).putstream),

	// Names: names.go, attr.go
	"stat":     on((*session).stat),
	"lstat":    on((*session).lstat),
	"access":   on((*session).access),
	"chmod":    on((*session).chmod),
	"chown":    on((*session).chown),
	"lchown":   on((*session).lchown),
	"truncate": on((*session).truncate),
	"utime":    on((*session).utime),
	"unlink":   on((*session).unlink),
	"rmdir":    on((*session).rmdir),
	"rmall":    on((*session).rmall),
	"mkdir":    on((*session).mkdir),
	"rename":   on((*session).rename),
	"link":     on((*session).link),
	"symlink":  on((*session).symlink),
	"readlink": on((*session).readlink),

	// Directories: dir.go, search.go, audit.go
	"getdir":     on((*session).getdir),
	"getlongdir": on((*session).getlongdir),
	"statfs":     on((*session).statfs),
	"localpath":  on((*session).localpath),
	"search":     on((*session).search),
	"audit":      on((*session).audit),

	// Attributes and sums: xattr.go, sum.go
	"getxattr":     on((*session).getxattr),
	"fgetxattr":    on((*session).fgetxattr),
	"lgetxattr":    on((*session).lgetxattr),
	"listxattr":    on((*session).listxattr),
	"flistxattr":   on((*session).flistxattr),
	"llistxattr":   on((*session).llistxattr),
	"setxattr":     on((*session).setxattr),
	"fsetxattr":    on((*session).fsetxattr),
	"lsetxattr":    on((*session).lsetxattr),
	"removexattr":  on((*session).removexattr),
	"fremovexattr": on((*session).fremovexattr),
	"lremovexattr": on((*session).lremovexattr),
	"md5":          on((*session).md5),
	"hash":         on((*session).hash),
	"setrep":       on((*session).setrep),

	// Identity and rights: rights.go, between.go
	"whoami":    on((*session).whoami),
	"whoareyou": on((*session).whoareyou),
	"getacl":    on((*session).getacl),
	"setacl":    on((*session).setacl),
	"resetacl":  on((*session).resetacl),

	// Tickets: ticket.go
	"ticket_register": on((*session).ticketRegister),
	"ticket_modify":   on((*session).ticketModify),
	"ticket_get":      on((*session).ticketGet),
	"ticket_list":     on((*session).ticketList),
	"ticket_delete":   on((*session).ticketDelete),

	// Space, and between servers: alloc.go, between.go
	"mkalloc":  on((*session).mkalloc),
	"lsalloc":  on((*session).lsalloc),
	"thirdput": on((*session).thirdput),
}

// unknownBody is the length of the data that follows a command which wire does not
// know: those on jobs are followed by data, and the stream must stay in step.
func unknownBody(line []byte) int64 {
	words := bytes.Fields(line)
	if len(words) != 2 {
		return 0
	}
	switch string(words[0]) {
	case "job_create", "job_commit", "job_kill", "job_status", "job_reap":
		if n, err := strconv.ParseInt(string(words[1]), 10, 64); err == nil {
			return max(n, 0)
		}
	}
	return 0
}

// reply sends a number, which is all of the reply or its beginning.
func (s *session) reply(n int64) {
	s.replied = true
	s.out.number(n)
}

// replyText sends a length, then the text.
func (s *session) replyText(text []byte) error {
	s.reply(int64(len(text)))
	s.out.write(text)
	return nil
}
