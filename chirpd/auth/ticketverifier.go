package auth

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net"
	"slices"
	"time"
)

// challengeSize is the length of a ticket's challenge, in bytes; so in the real
// server.
const challengeSize = 64

// maxDigests bounds the tickets that a client may offer in one go.
const maxDigests = 32

type ticketVerifier struct{ store *Store }

// TicketVerifier lets in whoever can sign with the key of a ticket in store that
// has not expired. The subject's name is the ticket's digest.
func TicketVerifier(store *Store) Verifier { return ticketVerifier{store} }

func (ticketVerifier) Name() string { return "ticket" }

func (v ticketVerifier) Verify(_ context.Context, s *Stream, _ net.Addr) (string, error) {
	for range maxDigests {
		digest, err := s.line()
		if err != nil {
			return "", err
		}
		if digest == "==" { // not answered: the client knows that it has no more
			return "", fmt.Errorf("%w: no ticket of the client's is good here", errRefused)
		}
		ok, err := v.try(s, digest)
		if err != nil || ok {
			return digest, err
		}
	}
	return "", fmt.Errorf("the client offered %d tickets, none of them good", maxDigests)
}

func (v ticketVerifier) try(s *Stream, digest string) (bool, error) {
	chain, err := v.store.Chain(digest)
	if err != nil || slices.ContainsFunc(chain, func(t Registered) bool { return t.Expired(time.Now()) }) {
		return false, s.send("declined")
	}
	key, err := chain[0].publicKey()
	if err != nil {
		return false, s.send("declined")
	}
	challenge := make([]byte, challengeSize)
	_, _ = rand.Read(challenge) // never fails: crypto/rand ends the program instead
	if err := s.sendBlob(challenge); err != nil {
		return false, err
	}
	head, err := s.line()
	if err != nil {
		return false, err
	}
	signature, err := s.blob(head)
	if err != nil {
		return false, fmt.Errorf("ticket signature: %w", err)
	}
	if rsa.VerifyPKCS1v15(key, crypto.Hash(0), challenge, signature) != nil {
		return false, s.send("failure")
	}
	return true, s.send("success")
}
