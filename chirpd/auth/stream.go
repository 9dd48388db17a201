package auth

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"skeletonkey/chirpd/wire"
)

// maxBlob bounds what a peer may announce as challenge or signature, in bytes: a
// signature of a 16,384 bit key fits.
const maxBlob = 4096

// Stream is the authentication part of a connection. The Reader must be the one
// that reads the requests or replies afterwards, as it may hold some already.
type Stream struct {
	*wire.Reader
	W io.Writer
}

// line reads a line as text.
func (s *Stream) line() (string, error) {
	b, err := s.ReadLine()
	return strings.TrimSpace(string(b)), err
}

// send writes each text as a line, all in one write.
func (s *Stream) send(lines ...string) error {
	_, err := io.WriteString(s.W, strings.Join(lines, "\n")+"\n")
	return err
}

// sendBlob writes a length, LF and the bytes.
func (s *Stream) sendBlob(b []byte) error {
	_, err := s.W.Write(append(wire.AppendInt(nil, int64(len(b))), b...))
	return err
}

// blob reads what sendBlob wrote. head is the length's line when that has been
// read already.
func (s *Stream) blob(head string) ([]byte, error) {
	n, err := strconv.Atoi(head)
	if err != nil || n < 0 || n > maxBlob {
		return nil, fmt.Errorf("%.40q is not a length of at most %d bytes", head, maxBlob)
	}
	b := make([]byte, n)
	_, err = io.ReadFull(s, b)
	return b, err
}

// Subject is who a client was found to be.
type Subject struct {
	Method string // "unix", "hostname", "address", "ticket"
	Name   string // user, host, address, or the ticket's digest
}

// String is the subject as ACLs name it, METHOD:NAME; blanks become `_`.
func (s Subject) String() string {
	return s.Method + ":" + strings.Join(strings.Fields(s.Name), "_")
}
