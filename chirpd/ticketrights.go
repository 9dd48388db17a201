package chirpd

import (
	"errors"
	"fmt"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// ticketMethod is the method by which tickets authenticate, and the word before the
// colon in their names.
const ticketMethod = "ticket"

// byTicket says whether the client has a ticket's rights.
func (s *session) byTicket() bool { return s.subject.Method == ticketMethod }

// checkTicket begins each request of a client with a ticket: the ticket may have
// expired, been deleted or changed meanwhile.
func (s *session) checkTicket() error {
	if !s.byTicket() {
		return nil
	}
	t, err := s.srv.tickets.Get(s.subject.Name)
	if errors.Is(err, auth.ErrNoTicket) {
		err = errors.New("the ticket was deleted")
	}
	if err == nil && t.Expired(time.Now()) {
		err = fmt.Errorf("the ticket expired at %s", t.Expires.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return &wire.Error{Op: "ticket", Code: wire.NotAuthenticated, Err: err}
	}
	s.who = t.Subject
	if len(t.Rights) == 0 {
		s.masks, s.maskSource = nil, nil
	} else if s.maskSource != &t.Rights[0] {
		s.masks, s.maskSource = masksOf(t.Rights), &t.Rights[0]
	}
	return nil
}

// masksOf reads a ticket's masks; one that cannot be read leaves no rights.
func masksOf(rights []auth.TicketRight) acl.Masks {
	masks := make(acl.Masks, 0, len(rights))
	for _, t := range rights {
		r, err := acl.ParseRights(t.Rights)
		if err != nil {
			r = 0
		}
		masks = append(masks, acl.Mask{Dir: t.Path, Rights: r})
	}
	return masks
}

// maskAllows is a check for what concerns a whole tree: a ticket's mask for a
// directory below counts there.
func (s *session) maskAllows(dir *confine.At, want acl.Rights) error {
	if s.byTicket() && !s.masks.For(dir.DirPath()).Has(want) {
		return &deniedError{want, dir.DirPath()}
	}
	return nil
}

// maskedBelow refuses to move a directory in which one of the ticket's masks lies: it
// would come out from under it.
func (s *session) maskedBelow(a *confine.At) error {
	if !s.byTicket() {
		return nil
	}
	for _, m := range s.masks {
		if below := (acl.Masks{{Dir: a.Path(), Rights: acl.Full}}).For(m.Dir); below != 0 {
			return &wire.Error{Op: "rename", Path: a.Path(), Code: wire.NotAuthorized,
				Err: fmt.Errorf("the ticket has a mask of its own at %s", m.Dir)}
		}
	}
	return nil
}
