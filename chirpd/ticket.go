package chirpd

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// maxKey bounds a ticket's public key, in bytes.
const maxKey = 16 << 10

// maxTicketAge bounds a ticket's duration, in seconds: 100 years, so that its end is a
// date.
const maxTicketAge = 100 * 366 * 24 * 3600

// self and everyone are the words for subjects in requests on tickets.
const (
	self     = "self"
	everyone = "all"
)

// mayOwn fails unless the client may have tickets as subject: only its own.
func (s *session) mayOwn(subject string) error {
	if subject != self && subject != s.who {
		return fmt.Errorf("tickets of %s: %w", subject, wire.NotAuthorized)
	}
	return nil
}

// made says whether a ticket was made by the client's own ticket, or by one that was. A
// client without a ticket counts as the maker of all.
func (s *session) made(digest string) bool {
	if !s.byTicket() {
		return true
	}
	chain, _ := s.srv.tickets.Chain(digest) // none, where one is missing
	return slices.ContainsFunc(chain, func(t auth.Registered) bool { return t.Parent == s.subject.Name })
}

// ownTicket finds a ticket by its name and fails unless it is the client's: for a client
// by ticket, one that was made by that.
func (s *session) ownTicket(name string) (digest string, t auth.Registered, err error) {
	if s.srv.tickets == nil {
		return "", t, fmt.Errorf("tickets are not in use here: %w", wire.NotSupported)
	}
	digest, ok := strings.CutPrefix(name, ticketMethod+":")
	if !ok {
		return "", t, fmt.Errorf("%.80q is not the name of a ticket: %w", name, wire.InvalidRequest)
	}
	t, err = s.srv.tickets.Get(digest)
	if err != nil {
		return "", t, err
	}
	if !s.made(digest) {
		return digest, t, fmt.Errorf("ticket %s was not made by the client's: %w", digest, wire.NotAuthorized)
	}
	return digest, t, s.mayOwn(t.Subject)
}

func (s *session) ticketRegister(r *wire.TicketRegister) error {
	key, err := s.smallBody(maxKey)
	if err != nil {
		return err
	}
	if s.srv.tickets == nil {
		return fmt.Errorf("tickets are not in use here: %w", wire.NotSupported)
	}
	if err := s.mayOwn(r.Subject); err != nil {
		return err
	}
	expires := time.Now().Add(time.Duration(min(r.Duration, maxTicketAge)) * time.Second)
	if s.byTicket() {
		_, err = s.srv.tickets.RegisterUnder(s.subject.Name, key, expires)
	} else {
		_, err = s.srv.tickets.Register(s.who, key, expires)
	}
	if errors.Is(err, fs.ErrInvalid) {
		err = &wire.Error{Op: r.Command(), Code: wire.InvalidRequest, Err: err}
	}
	return err
}

// ticketModify sets a ticket's mask for a directory, which has to exist: a link is
// followed now, as masks go by the real directories.
func (s *session) ticketModify(r *wire.TicketModify) error {
	digest, _, err := s.ownTicket(r.Ticket)
	if err != nil {
		return err
	}
	rights, err := acl.ParseRights(r.Rights)
	if err != nil {
		return &wire.Error{Op: r.Command(), Code: wire.InvalidRequest, Err: err}
	}
	var dir string
	err = s.directory(r.Path, 0, func(_, inside *place) error {
		dir = inside.Path()
		return nil
	})
	if err != nil {
		return err
	}
	if strings.Contains(dir, "\n") {
		return fmt.Errorf("a ticket's lines cannot carry %q: %w", dir, wire.InvalidRequest)
	}
	return s.srv.tickets.Modify(digest, dir, rights.String())
}

func (s *session) ticketGet(r *wire.TicketGet) error {
	digest, t, err := s.ownTicket(r.Ticket)
	if err != nil && !(s.byTicket() && digest == s.subject.Name) {
		return err
	}
	s.reply(0)
	_ = s.replyText([]byte(t.Subject))
	_ = s.replyText(t.PublicPEM)
	left := math.Ceil(time.Until(t.Expires).Seconds())
	s.out.number(max(0, int64(left)))
	for _, m := range t.Rights {
		s.out.write([]byte(m.Path + " " + m.Rights + "\n"))
	}
	s.out.number(0)
	return nil
}

func (s *session) ticketList(r *wire.TicketList) error {
	if s.srv.tickets == nil {
		return fmt.Errorf("tickets are not in use here: %w", wire.NotSupported)
	}
	if err := s.mayOwn(r.Subject); err != nil {
		return err
	}
	digests, err := s.srv.tickets.List(s.who)
	if err != nil {
		return err
	}
	digests = slices.DeleteFunc(digests, func(digest string) bool { return !s.made(digest) })
	s.reply(0)
	for _, digest := range digests {
		_ = s.replyText([]byte(ticketMethod + ":" + digest))
	}
	s.out.number(0)
	return nil
}

func (s *session) ticketDelete(r *wire.TicketDelete) error {
	digest, _, err := s.ownTicket(r.Ticket)
	if err != nil {
		return err
	}
	return s.srv.tickets.Delete(digest)
}
