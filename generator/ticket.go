package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/generator/job"
)

// cleanUp is how long the deletion of a ticket may take when its job cannot be written.
const cleanUp = 20 * time.Second

// NewTicket makes the ticket of a Job on its server and records it in the Job: it makes sure that every
// directory is there (a missing one to write is made) and that the owner has the rights to lend, then
// registers a key with the rights of each directory. When that fails the ticket is deleted again. The
// Job's server must be the one that s is connected to.
func NewTicket(ctx context.Context, s *client.Client, j *job.Job) (*auth.Ticket, error) {
	subject, err := s.Whoami(ctx)
	if err != nil {
		return nil, fmt.Errorf("ticket from %s: %w", j.Server, err)
	}
	for _, d := range j.Dirs {
		if err := prepare(ctx, s, subject, d); err != nil {
			return nil, fmt.Errorf("directory %s on %s: %w", d.Path, j.Server, err)
		}
	}
	lasts := time.Duration(j.Ticket.Seconds) * time.Second
	ticket, err := auth.NewTicket(j.Server, time.Now().Add(lasts).Truncate(time.Second))
	if err != nil {
		return nil, fmt.Errorf("ticket from %s: %w", j.Server, err)
	}
	ticket.Subject = subject
	if err := register(ctx, s, ticket, lasts, j.Dirs); err != nil {
		return nil, fmt.Errorf("ticket from %s: %w", j.Server, err)
	}
	j.Ticket.Digest, j.Ticket.Expires = ticket.Digest(), ticket.Expires.Unix()
	return ticket, nil
}

func register(ctx context.Context, s *client.Client, t *auth.Ticket, lasts time.Duration, dirs []job.Dir) error {
	err := s.TicketRegister(ctx, "self", lasts, t.PublicPEM())
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if err := s.TicketModify(ctx, t.Digest(), d.Path, d.Rights()); err != nil {
			return errors.Join(fmt.Errorf("%s in %s: %w", d.Rights(), d.Path, err), revoke(ctx, s, t.Digest()))
		}
	}
	return nil
}

// revoke deletes a ticket that nobody will use, also when ctx has ended.
func revoke(ctx context.Context, s *client.Client, digest string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
	defer cancel()
	if err := s.TicketDelete(ctx, digest); err != nil {
		return fmt.Errorf("delete ticket %s: %w", digest, err)
	}
	return nil
}

// prepare sees to it that the directory is there and that subject has the rights that the job needs.
func prepare(ctx context.Context, s *client.Client, subject string, d job.Dir) error {
	if err := ensureDir(ctx, s, d.Path, d.Write); err != nil {
		return err
	}
	list, err := accessList(ctx, s, d.Path)
	if err != nil {
		return fmt.Errorf("its access list: %w", err)
	}
	need, err := acl.ParseRights(d.Rights())
	if err != nil {
		return err
	}
	has := list.For(subject)
	switch {
	case has.Has(need):
		return nil
	case !has.Has(acl.Admin):
		return fmt.Errorf("%s has the rights %s there and the job needs %s; its administrator can give them: "+
			"skeletonkey acl set", subject, has, need)
	}
	if err := s.Setacl(ctx, d.Path, subject, (own(list, subject) | need).String()); err != nil {
		return fmt.Errorf("give %s the rights %s: %w", subject, need, err)
	}
	return nil
}

// accessList is the ACL that holds in a directory.
func accessList(ctx context.Context, s *client.Client, dir string) (acl.ACL, error) {
	entries, err := s.Getacl(ctx, dir)
	if err != nil {
		return nil, err
	}
	var text []byte
	for _, e := range entries {
		text = append(text, e.Subject+" "+e.Rights+"\n"...)
	}
	return acl.Parse(text)
}

// own is what the entries of exactly this subject give, without those that merely match it.
func own(list acl.ACL, subject string) acl.Rights {
	var exact acl.ACL
	for _, e := range list {
		if e.Subject == subject {
			exact = append(exact, e)
		}
	}
	return exact.For(subject)
}

// ensureDir fails unless the path is a directory; with create it makes it, and what is missing above it.
func ensureDir(ctx context.Context, s *client.Client, p string, create bool) error {
	st, err := s.Stat(ctx, p)
	switch {
	case err == nil && !st.IsDir():
		return errors.New("it is not a directory")
	case err == nil:
		return nil
	case !create, !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if p != "/" {
		if err := ensureDir(ctx, s, path.Dir(p), true); err != nil {
			return err
		}
	}
	if err := s.Mkdir(ctx, p, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make %s: %w", p, err)
	}
	return nil
}
