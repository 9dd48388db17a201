package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
)

// commandTimeout is how long a command waits for a server that is away, unless
// told otherwise: a person is waiting too.
const commandTimeout = time.Minute

// connection is what the flags of commands that talk to servers say.
type connection struct {
	auth         string
	tickets      []string
	challengeDir string
	timeout      time.Duration
}

func (c *connection) addFlags(cmd *cobra.Command, timeout time.Duration) {
	f := cmd.Flags()
	f.StringVarP(&c.auth, "auth", "a", "", "ways to authenticate, in order: ticket, unix, hostname, address\n(default: ticket where one is given, else unix where the server is on this machine)")
	f.StringArrayVarP(&c.tickets, "ticket", "i", nil, "a ticket `file`; may be repeated")
	f.DurationVarP(&c.timeout, "timeout", "t", timeout, "how long to wait for a server that does not answer; 0 gives up at once")
	f.StringVar(&c.challengeDir, "challenge-dir", auth.DefaultChallengeDir, "`directory` of unix challenges, shared with the server")
}

// servers are the connections that one command has opened, one to each server.
type servers struct {
	connection
	app  *app
	open map[string]*client.Client
}

func (a *app) servers(c connection) *servers {
	return &servers{connection: c, app: a, open: make(map[string]*client.Client)}
}

// at finds the client for a URL's server, and the path there.
func (s *servers) at(url string) (*client.Client, string, error) {
	server, path, err := client.ParseURL(url)
	if err != nil {
		return nil, "", usageError{err}
	}
	if c, ok := s.open[server]; ok {
		return c, path, nil
	}
	if s.timeout < 0 {
		return nil, "", usageError{fmt.Errorf("--timeout %v is negative", s.timeout)}
	}
	methods, err := s.methods(server)
	if err != nil {
		return nil, "", err
	}
	c := client.New(server, client.Options{Methods: methods, Timeout: atOnce(s.timeout), Log: s.log(server)})
	s.open[server] = c
	return c, path, nil
}

// atOnce turns the flag's 0 into what the client takes for it.
func atOnce(timeout time.Duration) time.Duration {
	if timeout == 0 {
		return -1
	}
	return timeout
}

func (s *servers) methods(server string) ([]auth.Method, error) {
	var tickets []*auth.Ticket
	for _, file := range s.tickets {
		t, err := auth.LoadTicket(file)
		if err != nil {
			return nil, err
		}
		tickets = append(tickets, t)
	}
	names, err := namesFor(s.auth, tickets, server)
	if err != nil {
		return nil, err
	}
	methods, err := auth.Methods(names, tickets, server, s.challengeDir)
	if err != nil {
		return nil, usageError{fmt.Errorf("--auth: %w", err)}
	}
	return methods, nil
}

// namesFor is the default of --auth: who gives a ticket means to go in with it, and
// with nothing that lends more.
func namesFor(names string, tickets []*auth.Ticket, server string) (string, error) {
	if names != "" || len(tickets) == 0 {
		return names, nil
	}
	for _, t := range tickets {
		if t.BoundTo(server) {
			return "ticket", nil
		}
	}
	return "", usageError{fmt.Errorf("no ticket is for %s, the first one is for %s: name the server as the ticket does, or say with --auth how to go in",
		server, tickets[0].Server)}
}

// log tells a person once that a server is waited for; what is silent for a minute
// seems to hang.
func (s *servers) log(server string) *slog.Logger {
	if s.timeout == 0 || !terminal(s.app.err) || s.app.quiet {
		return s.app.log
	}
	return slog.New(&awayNotice{Handler: s.app.log.Handler(), tell: func(cause string) {
		s.app.hint(fmt.Sprintf("%s does not answer (%s); trying for %v, Ctrl-C ends it", server, cause, s.timeout))
	}})
}

// awayNotice calls tell at the first attempt to connect that the client logs as
// failed, and passes on what the log wants.
type awayNotice struct {
	slog.Handler
	once sync.Once
	tell func(cause string)
}

// Enabled implements slog.Handler: attempts are told below the level of most logs.
func (n *awayNotice) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (n *awayNotice) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "cannot connect" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key != "cause" {
				return true
			}
			n.once.Do(func() { n.tell(a.Value.String()) })
			return false
		})
	}
	if !n.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return n.Handler.Handle(ctx, r)
}

func (s *servers) close() {
	for _, c := range s.open {
		_ = c.Close() // nothing is buffered: every call was waited for
	}
}

// each does the work for the path of each URL at its server, and reports all that
// failed.
func (s *servers) each(urls []string, work func(server *client.Client, path, url string) error) error {
	return each(urls, func(url string) error {
		server, path, err := s.at(url)
		if err != nil {
			return err
		}
		return work(server, path, url)
	})
}

// onServers makes the RunE of a command that talks to servers.
func (a *app) onServers(c *connection, run func(cmd *cobra.Command, s *servers, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s := a.servers(*c)
		defer s.close()
		return run(cmd, s, args)
	}
}
