package job

// Exit codes of a job script and of `skeletonkey run`. The application's own code passes through
// unchanged; these are what we end with ourselves. They follow sysexits.h. A code is final when the
// same job would end the same way anywhere, retryable when another try, or another node, may succeed.
const (
	ExitUsage         = 64  // wrong options, or a job that cannot be read: final
	ExitBadDownload   = 65  // a checksum does not fit, or an archive cannot be had or is refused: final
	ExitUnreachable   = 69  // the data server or the web server cannot be reached: retryable
	ExitInternal      = 70  // a fault of ours: final
	ExitNoMount       = 71  // this node cannot do it: no way to mount, no runtime for its machine, no tool to fetch with; another node may
	ExitNoScratch     = 73  // no scratch directory or cache can be made: another node may do
	ExitNotWritten    = 74  // data could not be written back: retryable
	ExitTemporary     = 75  // a temporary failure: retryable
	ExitTicket        = 77  // the ticket is refused or has expired: final, generate the job again
	ExitNotExecutable = 126 // the application cannot be executed: final
	ExitNotFound      = 127 // the application is not in what was unpacked or on the node: final
	ExitSignal        = 128 // 128+n: ended by signal n
)

// Retryable reports whether another try of the same job, here or on another node, may succeed after
// the exit code; it is false for 0 and for codes that are not ours, which only the application's
// author can judge.
func Retryable(code int) bool {
	switch code {
	case ExitUnreachable, ExitNoMount, ExitNoScratch, ExitNotWritten, ExitTemporary:
		return true
	}
	return false
}

// Descriptors on which a job script hands its parts to `skeletonkey run`; never as arguments or in
// the environment, which other users can see.
const (
	JobFD       = 3 // the Job, as Encode writes it
	TicketFD    = 4 // the ticket file; open only when the job has a ticket
	UserProxyFD = 5 // the X.509 proxy file; open only when the job has one
)
