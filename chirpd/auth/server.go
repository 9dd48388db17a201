package auth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// maxOffers bounds the methods that one connection may try.
const maxOffers = 16

// Verifier is the server's side of one way to authenticate.
type Verifier interface {
	// Name is the method's name on the wire.
	Name() string
	// Verify runs the method after `yes` has been sent, and returns the
	// subject's name. It returns errRefused, wrapped, when the client could not
	// prove itself and both are back at negotiation; any other error ends the
	// connection.
	Verify(ctx context.Context, s *Stream, peer net.Addr) (name string, err error)
}

// Accept lets the client try methods until one succeeds. The error says what
// became of each when the client gives up.
func Accept(ctx context.Context, s *Stream, peer net.Addr, verifiers []Verifier) (Subject, error) {
	var tried []string
	for range maxOffers {
		name, err := s.line()
		if err != nil {
			return Subject{}, fmt.Errorf("not authenticated (tried: %s): %w", strings.Join(tried, ", "), err)
		}
		if err := ctx.Err(); err != nil {
			return Subject{}, err
		}
		i := slices.IndexFunc(verifiers, func(v Verifier) bool { return v.Name() == name })
		if i < 0 {
			tried = append(tried, fmt.Sprintf("%.20q (not offered here)", name))
			if err := s.send("no"); err != nil {
				return Subject{}, err
			}
			continue
		}
		subject, err := verify(ctx, s, peer, verifiers[i])
		if err == nil || !errors.Is(err, errRefused) {
			return subject, err
		}
		tried = append(tried, name+" ("+err.Error()+")")
	}
	return Subject{}, fmt.Errorf("not authenticated after %d tries: %s", maxOffers, strings.Join(tried, ", "))
}

func verify(ctx context.Context, s *Stream, peer net.Addr, v Verifier) (Subject, error) {
	if err := s.send("yes"); err != nil {
		return Subject{}, err
	}
	name, err := v.Verify(ctx, s, peer)
	if err != nil {
		return Subject{}, err
	}
	subject := Subject{Method: v.Name(), Name: name}
	return subject, s.send("yes", subject.Method, subject.Name)
}

// refuse sends a no and gives the reason to the log.
func (s *Stream) refuse(format string, args ...any) error {
	if err := s.send("no"); err != nil {
		return err
	}
	return fmt.Errorf("%w: "+format, append([]any{errRefused}, args...)...)
}

func hostOf(peer net.Addr) string {
	host, _, err := net.SplitHostPort(peer.String())
	if err != nil {
		return peer.String()
	}
	return host
}

type addressVerifier struct{}

// AddressVerifier takes the peer's numeric address as its name. It lets in every
// user of the machines whose addresses an ACL names.
func AddressVerifier() Verifier { return addressVerifier{} }

func (addressVerifier) Name() string { return "address" }

func (addressVerifier) Verify(_ context.Context, s *Stream, peer net.Addr) (string, error) {
	return hostOf(peer), s.send("yes")
}

// Resolver is the part of net.Resolver that hostname needs.
type Resolver interface {
	LookupAddr(ctx context.Context, addr string) ([]string, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

type hostnameVerifier struct{ resolver Resolver }

// HostnameVerifier takes the peer's host name as its name, when the name that its
// address leads to leads back to the address: whoever owns an address may let it
// have any name. It lets in every user of the machines whose names an ACL names.
func HostnameVerifier(r Resolver) Verifier { return hostnameVerifier{r} }

func (hostnameVerifier) Name() string { return "hostname" }

func (v hostnameVerifier) Verify(ctx context.Context, s *Stream, peer net.Addr) (string, error) {
	addr := hostOf(peer)
	names, err := v.resolver.LookupAddr(ctx, addr)
	if err != nil {
		return "", s.refuse("%s has no name: %v", addr, err)
	}
	for _, name := range names {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		if back, err := v.resolver.LookupHost(ctx, name); err == nil && containsAddr(back, addr) {
			return name, s.send("yes")
		}
	}
	return "", s.refuse("the names of %s (%s) do not lead back to it", addr, strings.Join(names, ", "))
}

func containsAddr(list []string, addr string) bool {
	ip := net.ParseIP(addr)
	return slices.ContainsFunc(list, func(a string) bool { return ip != nil && ip.Equal(net.ParseIP(a)) })
}
