package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/fusefs/private"
	"skeletonkey/generator/job"
)

// MountConfig says what is served at a place; it is the Config of a private.Mount,
// and so comes to the serving process by a descriptor.
type MountConfig struct {
	// Repository is a CVMFS repository; then all that follows is not used.
	Repository *RepositoryConfig
	// Server is HOST:PORT.
	Server string
	// Path is the directory of the export that appears.
	Path string
	// Ask lists directories of the export that must be there and open to us: the
	// server is asked for them before anything is mounted.
	Ask []string
	// Check lists directories, Path or below it, for which the mount must answer.
	Check []string
	// Tickets are texts as auth.Ticket.Format makes them. Those for other servers
	// are not used.
	Tickets []string
	// Auth is a list of methods, "" for the default; see auth.Methods.
	Auth string
	// ChallengeDir is agreed on with the server for unix authentication, "" for
	// the default.
	ChallengeDir string
	// Helper mounts with fusermount3: there is no namespace.
	Helper bool
	// ConnectTimeout bounds the wait for the server's first answer, ServerTimeout
	// the wait for a server that went away later.
	ConnectTimeout, ServerTimeout time.Duration
}

// methods returns the ways to prove who we are.
func (c *MountConfig) methods() ([]auth.Method, error) {
	var tickets []*auth.Ticket
	for _, text := range c.Tickets {
		t, err := auth.ParseTicket([]byte(text))
		if err != nil {
			return nil, &Failure{job.ExitTicket, err}
		}
		tickets = append(tickets, t)
	}
	list, err := auth.Methods(c.Auth, tickets, c.Server, c.ChallengeDir)
	if err != nil {
		return nil, &Failure{job.ExitUsage, err}
	}
	if len(list) == 0 {
		return nil, fail(job.ExitTicket, "no ticket for %s, and no other way to prove who you are", c.Server)
	}
	return list, nil
}

// serving is what a serving process knows: mounts of one server share a client.
type serving struct {
	mu      sync.Mutex // guards clients and their users
	clients map[string]*shared
}

// shared is a client and how many mounts use it.
type shared struct {
	*client.Client
	users int
}

func newServing() *serving { return &serving{clients: make(map[string]*shared)} }

// serve is the private.ServeFunc of this program.
func (s *serving) serve(ctx context.Context, log *slog.Logger, m private.Mount) (private.Server, error) {
	var c MountConfig
	if err := json.Unmarshal(m.Config, &c); err != nil {
		return nil, &Failure{job.ExitInternal, err}
	}
	if c.Repository != nil {
		return serveRepository(ctx, log, m, c.Repository)
	}
	methods, err := c.methods()
	if err != nil {
		return nil, err
	}
	if err := c.ask(ctx, methods, log); err != nil {
		return nil, err
	}
	opts := client.Options{Methods: methods, Timeout: c.ServerTimeout, Log: log}
	cl := s.share(&c, opts)
	served, err := mountExport(ctx, cl, &c, m, log)
	if err != nil {
		return nil, errors.Join(err, s.release(&c))
	}
	served.release = func() error { return s.release(&c) }
	if err := answers(m.Where, &c); err != nil {
		return nil, errors.Join(err, served.Close(ctx))
	}
	return served, nil
}

// share returns the client for a config's server, a new one for the first mount.
func (s *serving) share(c *MountConfig, o client.Options) *client.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.clients[c.Server]
	if cl == nil {
		cl = &shared{Client: client.New(c.Server, o)}
		s.clients[c.Server] = cl
	}
	cl.users++
	return cl.Client
}

// release gives back what share returned; the last one closes it.
func (s *serving) release(c *MountConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cl := s.clients[c.Server]
	if cl.users--; cl.users > 0 {
		return nil
	}
	delete(s.clients, c.Server)
	return cl.Close()
}

// ask asks the server for each directory of Ask. It uses a client of its own, one
// that does not wait as long for a server as a running job does.
func (c *MountConfig) ask(ctx context.Context, methods []auth.Method, log *slog.Logger) error {
	cl := client.New(c.Server, client.Options{Methods: methods, Timeout: c.ConnectTimeout, Log: log})
	defer cl.Close()
	stats := make([]wire.Stat, len(c.Ask))
	calls := make([]*client.Call, len(c.Ask))
	for i, dir := range c.Ask {
		calls[i] = cl.StartStat(dir, &stats[i])
	}
	for i, dir := range c.Ask {
		_, err := calls[i].Wait(ctx)
		if err == nil && !stats[i].IsDir() {
			err = &wire.Error{Op: "stat", Path: "chirp://" + c.Server + dir, Code: wire.NotDir}
		}
		code := serverCode(err)
		if errors.Is(err, wire.NotAuthorized) { // what is missing is forbidden, too, where the parent is
			err = fmt.Errorf("%w: this directory is not open to you, or no longer there", err)
		}
		if err != nil {
			return &Failure{code, err}
		}
	}
	return nil
}

// serverCode is the exit code for an error of the server before the application
// has started.
func serverCode(err error) int {
	var network net.Error
	if errors.As(err, &network) {
		return job.ExitUnreachable
	}
	switch wire.CodeFor(err) {
	case wire.NotAuthenticated, wire.NotAuthorized:
		return job.ExitTicket
	case wire.DoesntExist, wire.NotDir:
		return job.ExitUsage
	case wire.TimedOut, wire.Disconnected, wire.Offline, wire.GrpUnreachable:
		return job.ExitUnreachable
	}
	return job.ExitTemporary
}

// answers makes sure that the mount at where answers for each directory of Check.
func answers(where string, c *MountConfig) error {
	for _, dir := range c.Check {
		if _, err := os.Stat(path.Join(where, strings.TrimPrefix(dir, c.Path))); err != nil {
			return &Failure{job.ExitNoMount, fmt.Errorf("the mount does not answer: %w", err)}
		}
	}
	return nil
}
