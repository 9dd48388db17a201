package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
	"skeletonkey/generator"
	"skeletonkey/generator/job"
)

func (a *app) ticketCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ticket", Short: "Make, list, show and revoke tickets",
		Long: `A ticket is a file that lends some of your rights on one server for a time, to a
job or another person. Whoever has the file has the rights.`,
	}
	cmd.AddCommand(a.ticketCreateCommand(), a.ticketListCommand(), a.ticketShowCommand(), a.ticketRevokeCommand())
	return cmd
}

func (a *app) ticketCreateCommand() *cobra.Command {
	var c connection
	var output string
	var read, write []string
	var duration time.Duration
	cmd := &cobra.Command{
		Use: "create -o FILE [--read DIR]... [--write DIR]... SERVER", Short: "Make a ticket", Args: cobra.ExactArgs(1),
		Long: `Create makes a ticket for SERVER (HOST:PORT) and writes it to a file with mode
0600. It lends reading in some directories, and reading and writing in others,
everything below them included, and nothing else. Only the server that is named
is ever shown the ticket, so name it as those who use the ticket will.`,
		Example: "  skeletonkey ticket create -o job.ticket --read /records --write /results data.example:9094",
	}
	c.addFlags(cmd, commandTimeout)
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "the `file` to write (required)")
	f.StringArrayVar(&read, "read", nil, "a `directory` of the server to read (rights rl); may be repeated")
	f.StringArrayVar(&write, "write", nil, "a `directory` of the server to write (rights rwld); may be repeated")
	f.DurationVar(&duration, "duration", job.DefaultTicketDuration, "how long the ticket lasts")
	_ = cmd.MarkFlagRequired("output") // fails only for a flag that does not exist
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		if len(read)+len(write) == 0 {
			return usageError{errors.New("a ticket without --read or --write would be good for nothing")}
		}
		if duration < time.Second {
			return usageError{fmt.Errorf("--duration %v: a ticket lasts a second at least", duration)}
		}
		server, _, err := s.at(args[0])
		if err != nil {
			return err
		}
		j := &job.Job{Server: server.Server(), Dirs: append(dirs(read, false), dirs(write, true)...)}
		j.Ticket.Seconds = int64(duration / time.Second)
		ticket, err := generator.NewTicket(cmd.Context(), server, j)
		if err != nil {
			return err
		}
		if err := ticket.Save(output); err != nil {
			return errors.Join(err, server.TicketDelete(cmd.Context(), ticket.Digest()))
		}
		_, err = fmt.Fprintln(a.out, ticket.Digest())
		return err
	})
	return cmd
}

func dirs(paths []string, write bool) []job.Dir {
	var list []job.Dir
	for _, p := range paths {
		p = wire.CleanPath(p)
		list = append(list, job.Dir{Path: p, Name: path.Base(p), Write: write})
	}
	return list
}

// ticketInfo is a ticket as the server knows it, for --json.
type ticketInfo struct {
	Digest  string            `json:"digest"`
	Subject string            `json:"subject"`
	Expires time.Time         `json:"expires"`
	Rights  map[string]string `json:"rights"` // by directory
}

func ticketInfoOf(digest string, t client.Ticket) ticketInfo {
	info := ticketInfo{digest, t.Subject, time.Now().Add(t.Left).Truncate(time.Second), make(map[string]string)}
	for _, r := range t.Rights {
		info.Rights[r.Path] = r.Rights
	}
	return info
}

func (i ticketInfo) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\t%s\t%s", i.Digest, i.Subject, i.Expires.Format(time.RFC3339))
	for _, dir := range slices.Sorted(maps.Keys(i.Rights)) {
		fmt.Fprintf(&b, "\t%s %s", dir, i.Rights[dir])
	}
	return b.String()
}

func (a *app) ticketListCommand() *cobra.Command {
	var c connection
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "list SERVER", Short: "List your tickets on a server", Args: cobra.ExactArgs(1),
		Long:    "List prints a line for each ticket: digest, owner, expiry and rights, with tabs\nbetween them.",
		Example: "  skeletonkey ticket list data.example:9094",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each, one a line")
	cmd.Flags().BoolVar(&all, "all", false, "everybody's, for the server's administrator")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, _, err := s.at(args[0])
		if err != nil {
			return err
		}
		subject := "self"
		if all {
			subject = "all"
		}
		digests, err := server.TicketList(cmd.Context(), subject)
		if err != nil {
			return err
		}
		return each(digests, func(digest string) error { return a.showTicket(cmd, server, digest, asJSON) })
	})
	return cmd
}

func (a *app) ticketShowCommand() *cobra.Command {
	var c connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show FILE | show DIGEST SERVER", Short: "Show what a ticket is good for", Args: cobra.RangeArgs(1, 2),
		Long: `Show asks the server what a ticket is good for, be it a ticket file or the digest
of one of your tickets. With a file, the ticket itself is how you authenticate
unless you say otherwise.`,
		Example: "  skeletonkey ticket show job.ticket",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		if len(args) == 1 {
			s.tickets = append(s.tickets, args[0])
		}
		server, digest, err := s.ticketAt(args)
		if err != nil {
			return err
		}
		return a.showTicket(cmd, server, digest, asJSON)
	})
	return cmd
}

// ticketAt finds a ticket by FILE or by DIGEST SERVER.
func (s *servers) ticketAt(args []string) (*client.Client, string, error) {
	if len(args) == 2 {
		server, _, err := s.at(args[1])
		return server, strings.TrimPrefix(args[0], "ticket:"), err
	}
	t, err := auth.LoadTicket(args[0])
	if err != nil {
		return nil, "", err
	}
	if t.Server == "" {
		return nil, "", usageError{fmt.Errorf("%s does not say its server; give %s SERVER", args[0], t.Digest())}
	}
	server, _, err := s.at(t.Server)
	return server, t.Digest(), err
}

func (a *app) showTicket(cmd *cobra.Command, server *client.Client, digest string, asJSON bool) error {
	t, err := server.TicketGet(cmd.Context(), digest)
	if err != nil {
		return fmt.Errorf("ticket %s on %s: %w", digest, server.Server(), err)
	}
	info := ticketInfoOf(digest, t)
	if asJSON {
		return json.NewEncoder(a.out).Encode(info)
	}
	_, err = fmt.Fprintln(a.out, info)
	return err
}

func (a *app) ticketRevokeCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "revoke FILE | revoke DIGEST SERVER", Short: "End a ticket at once", Args: cobra.RangeArgs(1, 2),
		Long: `Revoke ends a ticket, named by its file or its digest. It needs you, the owner: the
ticket itself cannot do it.`,
		Example: `  skeletonkey ticket revoke job.ticket
  skeletonkey ticket revoke 25960476c17bc4bdedd6617d1bd1af7b data.example:9094`,
	}
	c.addFlags(cmd, commandTimeout)
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, digest, err := s.ticketAt(args)
		if err != nil {
			return err
		}
		if err := server.TicketDelete(cmd.Context(), digest); err != nil {
			return fmt.Errorf("ticket %s on %s: %w", digest, server.Server(), err)
		}
		return nil
	})
	return cmd
}
