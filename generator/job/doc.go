// Package job holds the Job: what a job file (an ini file) says, checked, in the one form that the
// writer of a job script and its runner share.
//
// Guarantee: a Job that Parse, Load or Decode returned has passed Validate. Its directories are clean
// absolute paths of the export without ".." and without names that belong to the server, their link
// names are unique, its server is HOST:PORT, its arguments are the words a POSIX shell would make.
// Parse reports every fault of a file at once, each as FILE:LINE: and in the order of the lines;
// nothing unknown is passed over. Encode writes the same bytes for the same Job, and Decode accepts
// exactly what Encode of the same Version writes.
//
// # The job file
//
// The file is UTF-8 (a byte order mark is dropped), its lines end in LF or CRLF. A line is blank, a
// comment (its first visible character is # or ;), a [section], or a key and its value with = or :
// between them, whichever comes first. Blanks around names and values do not count. Values are never
// more than what stands there:
//
//   - No comments inside values: "url = https://h/a#/b;c" is that whole address.
//   - No expansion: %Y, a%20b, %(none)s, $HOME and ~ stay as written.
//   - No continuation: "p = C:\" ends with its line, and a value never goes on in the next one.
//   - Names of sections and keys are compared without regard to case. The names in [Environment] are
//     the exception: there case counts.
//   - A key stands once in a file, and so does a key under its old name. A section may be opened
//     again. A blank value is the same as no such key, save in [Environment], where it sets the
//     variable to nothing.
//   - Quotes protect: a value, or an item of a comma list, that begins and ends with the same quote
//     (" or ') and has none of that kind between stands for what is between them, blanks and commas
//     included. Any other quote is an ordinary character. Only "arguments" is different: there the
//     quotes are the shell's.
//
// "arguments" is split as a POSIX shell splits, quotes and backslashes taken away as it does, with
// nothing expanded: $x, $(id), `id`, * and ~ reach the application as written. What a shell would not
// take as part of a word (an unquoted ; & | < > ( ) or a # that begins a word) is an error, because
// somebody who writes it means something that would not happen.
//
// # Directories
//
// "export_base" is the path of the exported directory on the server's machine. An entry of "read" or
// "write" counts from there; an absolute one that lies below export_base is the same place, and any
// other absolute one is a path of the export, as it always was. ".." is refused. A directory in both
// lists is writable. Each is linked in the scratch directory under its last component; where two have
// the same, both are linked under their whole path with _ for /, and if that is still not unique the
// file is refused.
//
// # The script
//
// "script" is absolute (a program that the node, or the mounted export, has at that place), or
// relative: then it is looked for below the scratch directory, where the application was unpacked and
// the directories are linked, and a name without / that is not there is looked for in PATH.
// "location" is where the application's archive lies: an http, https or file URL, or a path on the
// node, a relative one counting from the directory in which the job was started. Without it nothing
// is unpacked.
//
// # Limits
//
// Names that are not UTF-8 cannot be written in a job file. gopkg.in/ini.v1 reads the lines; it takes a
// value that begins with a backquote or with three double quotes as a kind of quoting of its own, so such
// a value is refused unless it stands in quotes.
package job
