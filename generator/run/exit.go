package run

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
	"skeletonkey/installer"
)

// Failure is an end of a job that is not the application's own: why, and which of
// the exit codes in package job it stands for.
type Failure struct {
	Code int
	Err  error
}

// Error is the cause's text.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// ExitCode is the exit code that the failure stands for.
func (f *Failure) ExitCode() int { return f.Code }

// fail makes a Failure as fmt.Errorf makes an error.
func fail(code int, format string, args ...any) error {
	return &Failure{code, fmt.Errorf(format, args...)}
}

// signalError is a signal that came before the application ran.
type signalError struct{ signal syscall.Signal }

// Error names the signal.
func (e *signalError) Error() string {
	return fmt.Sprintf("ended by signal %d (%v) before the application was started", int(e.signal), e.signal)
}

// ExitCode is 128 and the signal's number.
func (e *signalError) ExitCode() int { return job.ExitSignal + int(e.signal) }

// failed returns err as a Failure: with the code that it carries itself, else with
// the given one. A context that ended, by a signal for example, outweighs what
// failed because of it.
func failed(ctx context.Context, code int, err error) error {
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		code, err = job.ExitTemporary, cause
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		code = coded.ExitCode()
	}
	return &Failure{code, err}
}

// diskCode is the exit code for an error of a scratch directory, and otherwise the
// given one.
func diskCode(err error, otherwise int) int {
	for _, e := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EFBIG,
		syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ESTALE,
	} {
		if errors.Is(err, e) {
			return job.ExitNoScratch
		}
	}
	return otherwise
}

// archiveCode is the exit code for an error of fetching or unpacking the
// application.
func archiveCode(err error) int {
	if installer.Retryable(err) {
		return job.ExitUnreachable
	}
	return diskCode(err, job.ExitBadDownload)
}

// ended turns what private.Run returned into an exit code, and an error if the end
// was not the application's own.
func ended(ctx context.Context, res private.Result, err error) (int, error) {
	code := res.ExitCode
	if res.Signal != 0 {
		code = job.ExitSignal + int(res.Signal)
	}
	switch {
	case err == nil && res.Signal != 0 && !res.Started:
		return code, &Failure{code, &signalError{res.Signal}}
	case err == nil:
		return code, nil
	case context.Cause(ctx) != nil:
		err = failed(ctx, job.ExitTemporary, err)
		return ExitCode(err), err
	}
	ours := privateCode(err)
	if res.Started {
		err = fmt.Errorf("the application ended with code %d, but: %w", code, err)
	}
	return ours, &Failure{ours, err}
}

// privateCode is the exit code for an error of private.Run.
func privateCode(err error) int {
	var ours *Failure
	var unavailable *private.Unavailable
	var exec *private.ExecError
	var mount *private.MountError
	switch {
	case errors.As(err, &ours):
		return ours.Code
	case errors.Is(err, private.ErrDied):
		return job.ExitNotWritten
	case errors.As(err, &mount) && mount.Closing:
		return job.ExitNotWritten
	case errors.As(err, &mount) && mount.Code != 0:
		return mount.Code
	case errors.As(err, &unavailable), errors.As(err, &mount), errors.Is(err, private.ErrNoMountPoint):
		return job.ExitNoMount
	case errors.As(err, &exec):
		return exec.ExitCode()
	}
	return job.ExitInternal
}

// ExitCode returns the exit code that an error of Run or Exec stands for; 0 for nil.
func ExitCode(err error) int {
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return 0
	case errors.As(err, &coded):
		return coded.ExitCode()
	}
	return job.ExitInternal
}
