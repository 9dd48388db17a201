package main

import (
	"fmt"
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
	f.StringVarP(&c.auth, "auth", "a", "", "ways to authenticate, in order: ticket, unix, hostname, address\n(default: the tickets, and unix where the server is on this machine)")
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
	methods, err := s.methods(server)
	if err != nil {
		return nil, "", err
	}
	c := client.New(server, client.Options{Methods: methods, Timeout: atOnce(s.timeout), Log: s.app.log})
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
	methods, err := auth.Methods(s.auth, tickets, server, s.challengeDir)
	if err != nil {
		return nil, usageError{fmt.Errorf("--auth: %w", err)}
	}
	return methods, nil
}

func (s *servers) close() {
	for _, c := range s.open {
		_ = c.Close() // nothing is buffered: every call was waited for
	}
}

// onServers makes the RunE of a command that talks to servers.
func (a *app) onServers(c *connection, run func(cmd *cobra.Command, s *servers, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		s := a.servers(*c)
		defer s.close()
		return run(cmd, s, args)
	}
}
