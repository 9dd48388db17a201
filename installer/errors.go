package installer

import (
	"errors"
	"fmt"
)

// What can be wrong with a fetched file or an archive. Test with errors.Is; the
// error that Fetch or Unpack returns says where.
var (
	// ErrChecksum: the content is not the one whose checksum was given.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrTooLarge: the content is longer than FetchOptions.MaxSize.
	ErrTooLarge = errors.New("larger than allowed")
	// ErrFormat: neither a tar archive nor one of the known compressions of it.
	ErrFormat = errors.New("not a tar archive (plain, gz, xz, zst or bz2)")
	// ErrCorrupt: the archive or its compression contradicts itself.
	ErrCorrupt = errors.New("damaged archive")
	// ErrTruncated: the archive ends too early.
	ErrTruncated = errors.New("truncated archive")
	// ErrTrailing: something other than zeros or another archive follows the end.
	ErrTrailing = errors.New("unknown data after the end of the archive")
	// ErrUnsafe: a member is refused because of what it would do.
	ErrUnsafe = errors.New("refused")
	// ErrLimit: one of UnpackOptions.Limits, or a memory cap, is exceeded.
	ErrLimit = errors.New("limit exceeded")
)

// FetchError is the error of Fetch: which URL, by which proxy, what happened.
type FetchError struct {
	URL      string // without a password
	Proxy    string // the proxy of the last try, "" for none; without a password
	Status   int    // the HTTP status that was the reason, else 0
	Attempts int    // rounds through the list of proxies that were begun
	// Retryable tells that the same call may succeed later. It is false for what
	// will not change by itself, such as a 404, a checksum mismatch, a full disk.
	Retryable bool
	Err       error
}

// Error names the URL, the proxy and the cause.
func (e *FetchError) Error() string {
	s := "fetch " + e.URL
	if e.Proxy != "" {
		s += " through " + e.Proxy
	}
	s += ": " + e.Err.Error()
	if e.Attempts > 1 {
		s += fmt.Sprintf(" (after %d attempts)", e.Attempts)
	}
	return s
}

// Unwrap returns the cause.
func (e *FetchError) Unwrap() error { return e.Err }

// Retryable reports whether err comes from Fetch and the same call may succeed
// later.
func Retryable(err error) bool {
	var fe *FetchError
	return errors.As(err, &fe) && fe.Retryable
}

// UnpackError is the error of the Unpack functions: which archive, which member.
// A failed system call is found with errors.Is (syscall.ENOSPC, for example).
type UnpackError struct {
	Archive string // the file's name, "" where the archive came from a reader
	Member  string // as the archive has it, "" where no single member is at fault
	Err     error
}

// Error names the archive, the member and the cause.
func (e *UnpackError) Error() string { return e.where() + ": " + e.Err.Error() }

func (e *UnpackError) where() string {
	s := "unpack"
	if e.Archive != "" {
		s += " " + e.Archive
	}
	if e.Member != "" {
		s += fmt.Sprintf(": member %q", e.Member)
	}
	return s
}

// Unwrap returns the cause.
func (e *UnpackError) Unwrap() error { return e.Err }
