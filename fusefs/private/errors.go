package private

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrNoNamespace says that no private mount namespace is to be had; see
	// Unavailable for the reason.
	ErrNoNamespace = errors.New("no private mount namespace")
	// ErrNoFuse says that FUSE file systems cannot be mounted here; see
	// Unavailable for the reason.
	ErrNoFuse = errors.New("no FUSE")
	// ErrNoMountPoint says that a Mount's place neither exists nor may be made; see
	// PlaceError for which.
	ErrNoMountPoint = errors.New("no such mount point")
	// ErrDied says that the process which served the file systems ended by
	// itself (killed, out of memory, crashed). What the command had written
	// may be lost.
	ErrDied = errors.New("the process that serves the file systems died")
)

// Unavailable tells why this machine offers no way to run a command privately.
type Unavailable struct {
	What   error  // ErrNoNamespace or ErrNoFuse
	Reason string // the cause, as far as it can be told
	WayOut string // what a person can do
	Err    error  // what the system said
}

// Error names the cause and the way out.
func (e *Unavailable) Error() string {
	return fmt.Sprintf("%v: %s: %v; %s", e.What, e.Reason, e.Err, e.WayOut)
}

// Unwrap lets errors.Is find What and the system's error.
func (e *Unavailable) Unwrap() []error { return []error{e.What, e.Err} }

// ExecError tells why the command could not be started.
type ExecError struct {
	Path string
	Err  error // a syscall.Errno
}

// Error names the program.
func (e *ExecError) Error() string { return fmt.Sprintf("start %s: %v", e.Path, e.Err) }

// Unwrap returns the system's error.
func (e *ExecError) Unwrap() error { return e.Err }

// ExitCode is what a shell returns for it: 127 when there is no such program,
// 126 when there is one that cannot be executed.
func (e *ExecError) ExitCode() int {
	if errors.Is(e.Err, fs.ErrNotExist) {
		return 127
	}
	return 126
}

// PlaceError is an ErrNoMountPoint that names the place.
type PlaceError struct {
	Where string
	Text  string // the cause
}

// Error names the place and the cause.
func (e *PlaceError) Error() string {
	return fmt.Sprintf("mount at %s: %v: %s", e.Where, ErrNoMountPoint, e.Text)
}

// Unwrap returns ErrNoMountPoint.
func (e *PlaceError) Unwrap() error { return ErrNoMountPoint }

// MountError is what a ServeFunc or a Server's Close returned. Only its text
// and its code come over from the serving process.
type MountError struct {
	Where   string
	Closing bool // from Close: data may not have been written back
	Text    string
	// Code is the ExitCode() of the original error, or of one that it wraps,
	// and 0 if it has none.
	Code int
}

// Error names the place.
func (e *MountError) Error() string {
	if e.Closing {
		return fmt.Sprintf("unmount %s: %s", e.Where, e.Text)
	}
	return fmt.Sprintf("mount %s: %s", e.Where, e.Text)
}

// coded is an error that knows the exit code it stands for.
type coded interface{ ExitCode() int }

// kind says what a failure of the inner process means to the outer.
type kind string

const (
	kindNamespace  kind = "namespace"   // this way of having a namespace does not work
	kindProc       kind = "proc"        // nor does a PID namespace, for want of a new /proc
	kindFuse       kind = "fuse"        // ErrNoFuse
	kindMountPoint kind = "mount point" // ErrNoMountPoint
	kindServe      kind = "serve"       // a ServeFunc failed
	kindClose      kind = "close"       // a Server's Close failed
	kindExec       kind = "exec"        // ExecError
	kindOther      kind = "other"
)

// maxText bounds what a MountError says, in bytes.
const maxText = 4 << 10

// failure is an error on its way from the inner process to the outer.
type failure struct {
	Kind  kind
	Text  string        // what failed, without the errno
	Path  raw           // of kindExec, kindServe, kindClose, kindMountPoint
	Errno syscall.Errno // 0 if unknown
	Code  int           // of kindServe and kindClose
}

// Error makes a failure usable inside the inner process.
func (f *failure) Error() string {
	if f.Errno != 0 {
		return fmt.Sprintf("%s: %v", f.Text, f.Errno)
	}
	return f.Text
}

// Unwrap returns the errno, nil if unknown.
func (f *failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

// failed returns a failure of kind k in doing what text says.
func failed(k kind, text string, err error) *failure {
	f := &failure{Kind: k, Text: text}
	if err != nil && !errors.As(err, &f.Errno) {
		f.Text += ": " + err.Error()
	}
	return f
}

// mountFailure returns a failure of a ServeFunc (kindServe) or Close.
func mountFailure(k kind, where string, err error) *failure {
	f := &failure{Kind: k, Path: raw(where), Text: err.Error()}
	if len(f.Text) > maxText {
		f.Text = f.Text[:maxText] + "..."
	}
	var c coded
	if errors.As(err, &c) {
		f.Code = c.ExitCode()
	}
	return f
}

// public returns the failure as the error that callers of Run see.
func (f *failure) public() error {
	switch f.Kind {
	case kindFuse:
		return noFuse(f)
	case kindExec:
		return &ExecError{Path: string(f.Path), Err: f.Errno}
	case kindServe, kindClose:
		return &MountError{Where: string(f.Path), Closing: f.Kind == kindClose, Text: f.Text, Code: f.Code}
	case kindMountPoint:
		return &PlaceError{Where: string(f.Path), Text: f.Text}
	}
	if f.Errno != 0 {
		return fmt.Errorf("run in a private namespace: %s: %w", f.Text, f.Errno)
	}
	return fmt.Errorf("run in a private namespace: %s", f.Text)
}
