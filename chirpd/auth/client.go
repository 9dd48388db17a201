package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"skeletonkey/chirpd/wire"
)

// Method is the client's side of one way to authenticate.
type Method interface {
	// Name is the method's name on the wire.
	Name() string
	// Prove runs the method after the server has agreed to it. server is the
	// host:port that the user named. It returns errRefused, wrapped, when the
	// server did not believe it and both are back at negotiation; any other
	// error ends the connection.
	Prove(ctx context.Context, s *Stream, server string) error
}

// errRefused is a method's orderly failure: the stream is in step.
var errRefused = errors.New("refused by the server")

// Authenticate offers the methods in order until the server accepts one, and
// returns whom the server took us for. When none is accepted the error is a
// *wire.Error with NotAuthenticated that says what became of each.
func Authenticate(ctx context.Context, s *Stream, server string, methods []Method) (Subject, error) {
	tried := make([]string, 0, len(methods))
	for _, m := range methods {
		if err := ctx.Err(); err != nil {
			return Subject{}, err
		}
		subject, err := offer(ctx, s, server, m)
		if err == nil {
			return subject, nil
		}
		if !errors.Is(err, errRefused) {
			return Subject{}, fmt.Errorf("authenticating to %s by %s: %w", server, m.Name(), err)
		}
		tried = append(tried, m.Name()+" ("+err.Error()+")")
	}
	why := "no method to offer; name one with --auth, or give a ticket for this server with --ticket"
	if len(tried) > 0 {
		why = "tried " + strings.Join(tried, ", ")
	}
	return Subject{}, &wire.Error{Op: "authenticate", Path: server, Code: wire.NotAuthenticated,
		Err: fmt.Errorf("%w: %s", wire.NotAuthenticated, why)}
}

func offer(ctx context.Context, s *Stream, server string, m Method) (Subject, error) {
	if err := s.send(m.Name()); err != nil {
		return Subject{}, err
	}
	if err := s.expectYes("does not take this method"); err != nil {
		return Subject{}, err
	}
	if err := m.Prove(ctx, s, server); err != nil {
		return Subject{}, err
	}
	return s.welcome()
}

// expectYes reads a verdict; a no is errRefused for the reason given.
func (s *Stream) expectYes(reason string) error {
	answer, err := s.line()
	switch {
	case err != nil:
		return err
	case answer == "yes":
		return nil
	case answer == "no":
		return fmt.Errorf("%w: %s", errRefused, reason)
	}
	return fmt.Errorf("answer %.40q is neither yes nor no; is this a Chirp server?", answer)
}

// welcome reads the three lines that end a successful authentication.
func (s *Stream) welcome() (subject Subject, err error) {
	if err := s.expectYes("the subject is not let in"); err != nil {
		return subject, err
	}
	if subject.Method, err = s.line(); err != nil {
		return subject, err
	}
	subject.Name, err = s.line()
	return subject, err
}

// byAddress is hostname or address: the server finds out by itself.
type byAddress string

// Hostname lets the server take the name of this machine as identity.
func Hostname() Method { return byAddress("hostname") }

// Address lets the server take the address of this machine as identity.
func Address() Method { return byAddress("address") }

func (m byAddress) Name() string { return string(m) }

func (m byAddress) Prove(_ context.Context, s *Stream, _ string) error {
	return s.expectYes("this machine's " + string(m) + " was not accepted")
}

// Methods makes the methods of a comma-separated list of names (unix, ticket,
// hostname, address), in its order, for server (host:port). Of the tickets only
// those made for server are used. An empty list is the default: the tickets where
// there are any, as who gives a ticket means to lend no more, else unix where server
// is on this machine. A name that is not known is an error.
// challengeDir is the directory agreed on for unix; empty for DefaultChallengeDir.
func Methods(names string, tickets []*Ticket, server, challengeDir string) ([]Method, error) {
	if names == "" {
		names = defaultNames(tickets, server)
	}
	methods := []Method{} // not nil: nothing to offer is not the default
	for name := range strings.SplitSeq(names, ",") {
		switch strings.TrimSpace(name) {
		case "ticket":
			for _, t := range tickets {
				if t.BoundTo(server) {
					methods = append(methods, t.Method())
				}
			}
		case "unix":
			methods = append(methods, Unix(challengeDir))
		case "hostname":
			methods = append(methods, Hostname())
		case "address":
			methods = append(methods, Address())
		default:
			return nil, fmt.Errorf("authentication method %q is not one of unix, ticket, hostname, address", name)
		}
	}
	return methods, nil
}

func defaultNames(tickets []*Ticket, server string) string {
	if len(tickets) == 0 && IsLoopback(server) {
		return "unix"
	}
	return "ticket"
}

// IsLoopback reports whether server (host:port) names this machine by a loopback
// address or the name localhost, without asking any name server.
func IsLoopback(server string) bool {
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
