package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/acl"
)

func (a *app) aclCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "acl", Short: "Show and set who may do what in a directory of a server"}
	cmd.AddCommand(a.aclGetCommand(), a.aclSetCommand())
	return cmd
}

const rightsHelp = `Rights are letters: r read, w write, l list, d delete, a administer, x execute,
p put (create new files only), v(LETTERS) make a directory with those rights in it;
n is none. A subject is METHOD:NAME, as whoami prints it; * in it stands for
anything.`

func (a *app) aclGetCommand() *cobra.Command {
	var c connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "get URL", Short: "Show the rights in a directory", Args: cobra.ExactArgs(1),
		Long: "Get prints a line `SUBJECT RIGHTS` for each subject.\n\n" + rightsHelp, Example: "  skeletonkey acl get chirp://data:9094/results",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each, one a line")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, p, err := s.at(args[0])
		if err != nil {
			return err
		}
		entries, err := server.Getacl(cmd.Context(), p)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if asJSON {
				err = json.NewEncoder(a.out).Encode(map[string]string{"subject": e.Subject, "rights": e.Rights})
			} else {
				_, err = fmt.Fprintf(a.out, "%s %s\n", e.Subject, e.Rights)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return cmd
}

func (a *app) aclSetCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "set URL SUBJECT RIGHTS", Short: "Set the rights of a subject in a directory", Args: cobra.ExactArgs(3),
		Long: "Set gives the subject exactly these rights in the directory; none (or n) takes them\nall away. It needs the right a there.\n\n" + rightsHelp,
		Example: `  skeletonkey acl set chirp://data:9094/results unix:bob rl
  skeletonkey acl set chirp://data:9094/results unix:bob none`,
	}
	c.addFlags(cmd, commandTimeout)
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		subject, rights, err := aclEntry(args[1], args[2])
		if err != nil {
			return usageOf(cmd, err)
		}
		server, p, err := s.at(args[0])
		if err != nil {
			return err
		}
		return server.Setacl(cmd.Context(), p, subject, rights)
	})
	return cmd
}

// aclEntry checks an entry as a person writes it: one that matches nobody helps
// nobody. Rights that are none are the empty string on the wire.
func aclEntry(subject, rights string) (string, string, error) {
	if method, name, ok := strings.Cut(subject, ":"); (!ok || method == "" || name == "") && !strings.Contains(subject, "*") {
		return "", "", fmt.Errorf("subject %q is not METHOD:NAME, as in unix:bob", subject)
	}
	if rights == "none" || rights == "n" {
		return subject, "", nil
	}
	if _, err := acl.ParseRights(rights); err != nil {
		return "", "", fmt.Errorf("rights %q: %w", rights, err)
	}
	return subject, rights, nil
}
