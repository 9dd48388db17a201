package job

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault of a job file.
type Error struct {
	File string
	Line int // from 1; 0 when no single line is at fault
	Msg  string
}

// Error returns FILE:LINE: message, or FILE: message when no line is at fault.
func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Errors is every fault of a job file, in the order of the lines; those without a line come last.
type Errors []*Error

// Error returns the faults one a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single *Error.
func (es Errors) Unwrap() []error {
	out := make([]error, len(es))
	for i, e := range es {
		out[i] = e
	}
	return out
}

// faults collects the Errors of one file.
type faults struct {
	file string
	list Errors
}

func (f *faults) add(line int, format string, args ...any) {
	f.list = append(f.list, &Error{File: f.file, Line: line, Msg: fmt.Sprintf(format, args...)})
}

// err returns what was collected, or nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b *Error) int {
		if (a.Line == 0) != (b.Line == 0) {
			return cmp.Compare(b.Line, a.Line)
		}
		return cmp.Compare(a.Line, b.Line)
	})
	return f.list
}
