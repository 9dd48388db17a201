package chirpd

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
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
	chain, err := s.srv.tickets.Chain(s.subject.Name)
	if errors.Is(err, auth.ErrNoTicket) {
		err = errors.New("the ticket, or the one by which it was made, was deleted")
	}
	for _, t := range chain {
		if t.Expired(time.Now()) {
			err = fmt.Errorf("the ticket expired at %s", t.Expires.UTC().Format(time.RFC3339))
		}
	}
	if err != nil {
		return &wire.Error{Op: "ticket", Code: wire.NotAuthenticated, Err: err}
	}
	s.who = chain[0].Subject
	s.lent = slices.Grow(s.lent, len(chain))[:len(chain)]
	for i, t := range chain {
		s.lent[i].read(t.Rights)
	}
	return nil
}

// lent is what one ticket of a chain lends.
type lent struct {
	masks  acl.Masks
	source *auth.TicketRight // that masks were read from
}

func (l *lent) read(rights []auth.TicketRight) {
	if len(rights) == 0 {
		*l = lent{}
	} else if l.source != &rights[0] {
		*l = lent{masksOf(rights), &rights[0]}
	}
}

// masked is what the client's tickets leave of rights in a directory. A client without
// a ticket has none.
func (s *session) masked(r acl.Rights, dir string) acl.Rights {
	for _, l := range s.lent {
		r = r.And(l.masks.For(dir))
	}
	return r
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
func (s *session) maskAllows(dir *place, want acl.Rights) error {
	if !s.masked(want, dir.DirPath()).Has(want) {
		return &deniedError{want, dir.DirPath()}
	}
	return nil
}

// maskedBelow refuses to move a directory in which one of the ticket's masks lies: it
// would come out from under it.
func (s *session) maskedBelow(a *place) error {
	for _, l := range s.lent {
		for _, m := range l.masks {
			if below := (acl.Masks{{Dir: a.Path(), Rights: acl.Full}}).For(m.Dir); below != 0 {
				return &wire.Error{Op: "rename", Path: a.Path(), Code: wire.NotAuthorized,
					Err: fmt.Errorf("the ticket has a mask of its own at %s", m.Dir)}
			}
		}
	}
	return nil
}
