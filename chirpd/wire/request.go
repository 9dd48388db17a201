package wire

import (
	"fmt"
	"sync"
)

// Request is one command with its arguments; there is a type per command.
// Paths are in their decoded form. Data that follows a request is not part of
// it: see DataLength.
type Request interface {
	// Command is the command's name on the wire.
	Command() string
	words(*coder)
}

// WithData is a request that is followed at once by DataLength bytes.
type WithData interface {
	Request
	// DataLength is the number of bytes that follow the request's line.
	DataLength() int64
}

// AppendRequest appends r's line, LF included, to dst. It fails, and returns dst
// as it was, when an argument cannot be said on the wire.
func AppendRequest(dst []byte, r Request) ([]byte, error) {
	c := coder{buf: append(dst, r.Command()...)}
	r.words(&c)
	if c.err != nil {
		return dst, &Error{Op: r.Command(), Code: InvalidRequest, Err: c.err}
	}
	return append(c.buf, '\n'), nil
}

// ParseRequest reads a request's line without its LF. An unknown command and
// bad arguments give an *Error with InvalidRequest. When a request that data
// follows cannot be understood, the stream is out of step beyond it, and the
// error is a *LostStepError: the connection has to be closed.
func ParseRequest(line []byte) (Request, error) {
	name, rest := cutWord(line)
	make, ok := commands()[string(name)]
	if !ok {
		return nil, &Error{Op: fmt.Sprintf("%.40q", name), Code: InvalidRequest, Err: errUnknownCommand}
	}
	r := make()
	c := coder{decoding: true, rest: rest}
	r.words(&c)
	if c.err == nil {
		return r, nil
	}
	err := &Error{Op: r.Command(), Code: InvalidRequest, Err: c.err}
	if _, ok := r.(WithData); ok {
		return nil, &LostStepError{err}
	}
	return nil, err
}

var errUnknownCommand = fmt.Errorf("unknown command")

// LostStepError is a request whose data's length is not known, so that what
// follows on the stream cannot be told from requests.
type LostStepError struct{ Cause *Error }

// Error says what was wrong with the request.
func (e *LostStepError) Error() string { return e.Cause.Error() + " (stream is out of step)" }

// Unwrap gives the request's error.
func (e *LostStepError) Unwrap() error { return e.Cause }

// commands makes an empty request for each command's name.
var commands = sync.OnceValue(func() map[string]func() Request {
	table := make(map[string]func() Request)
	for _, list := range [][]func() Request{dataRequests, nameRequests, attrRequests, rightsRequests} {
		for _, make := range list {
			table[make().Command()] = make
		}
	}
	return table
})

// of makes the maker of a request type.
func of[T any, P interface {
	*T
	Request
}]() Request {
	return P(new(T))
}

// Commands lists the names of all commands that ParseRequest knows.
func Commands() []string {
	names := make([]string, 0, len(commands()))
	for name := range commands() {
		names = append(names, name)
	}
	return names
}
