package main

import (
	"bufio"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

// fileInfo is a file's attributes as commands print them with --json.
type fileInfo struct {
	Name  string    `json:"name"`
	Type  string    `json:"type"` // file, directory, link or other
	Mode  string    `json:"mode"` // octal permissions
	Links int64     `json:"links"`
	Size  int64     `json:"size"` // bytes
	Mtime time.Time `json:"mtime"`
	Inode int64     `json:"inode"`
}

func infoOf(name string, st wire.Stat) fileInfo {
	kind := "other"
	switch {
	case st.IsDir():
		kind = "directory"
	case st.IsRegular():
		kind = "file"
	case st.IsSymlink():
		kind = "link"
	}
	return fileInfo{name, kind, fmt.Sprintf("%04o", st.Mode&0o7777), st.Nlink, st.Size, st.ModTime(), st.Ino}
}

// long is a line of ls -l.
func (i fileInfo) long() string {
	return fmt.Sprintf("%s%s %3d %12d %s %s", i.Type[:1], i.Mode, i.Links, i.Size, i.Mtime.Format("2006-01-02 15:04"), i.Name)
}

func (a *app) lsCommand() *cobra.Command {
	var c connection
	var long, all, asJSON bool
	cmd := &cobra.Command{
		Use: "ls URL...", Short: "List directories of a server", Args: cobra.MinimumNArgs(1),
		Example: `  skeletonkey ls chirp://data:9094/
  skeletonkey ls -l /chirp/data:9094/records`,
	}
	c.addFlags(cmd, commandTimeout)
	f := cmd.Flags()
	f.BoolVarP(&long, "long", "l", false, "with type, mode, links, size in bytes and time")
	f.BoolVarP(&all, "all", "A", false, "also names that begin with a dot")
	f.BoolVar(&asJSON, "json", false, "a JSON object for each file, one a line")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		out := bufio.NewWriter(a.out)
		err := each(args, func(url string) error {
			infos, err := listing(cmd, s, url, all)
			if err != nil {
				return err
			}
			if len(args) > 1 && !asJSON {
				_, _ = fmt.Fprintf(out, "%s:\n", url)
			}
			for i := range infos {
				infos[i].Name = a.shown(infos[i].Name, asJSON)
			}
			return printInfos(out, infos, long, asJSON)
		})
		return cmp.Or(err, out.Flush())
	})
	return cmd
}

// listing is a directory's entries by name, or the file itself.
func listing(cmd *cobra.Command, s *servers, url string, all bool) ([]fileInfo, error) {
	server, p, err := s.at(url)
	if err != nil {
		return nil, err
	}
	entries, err := server.Getlongdir(cmd.Context(), p)
	if errors.Is(err, wire.NotDir) {
		st, err := server.Stat(cmd.Context(), p)
		return []fileInfo{infoOf(path.Base(p), st)}, err
	}
	if err != nil {
		return nil, err
	}
	var infos []fileInfo
	for _, e := range entries {
		if e.Name != "." && e.Name != ".." && (all || e.Name[0] != '.') {
			infos = append(infos, infoOf(e.Name, e.Stat))
		}
	}
	slices.SortFunc(infos, func(a, b fileInfo) int { return cmp.Compare(a.Name, b.Name) })
	return infos, nil
}

// shown is a name as it is printed; JSON escapes by itself what a terminal minds.
func (a *app) shown(name string, asJSON bool) string {
	if asJSON {
		return name
	}
	return a.printable(a.out, name)
}

func printInfos(out io.Writer, infos []fileInfo, long, asJSON bool) error {
	lines := json.NewEncoder(out)
	for _, i := range infos {
		var err error
		switch {
		case asJSON:
			err = lines.Encode(i)
		case long:
			_, err = fmt.Fprintln(out, i.long())
		default:
			_, err = fmt.Fprintln(out, i.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) statCommand() *cobra.Command {
	var c connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "stat URL...", Short: "Show the attributes of files on a server", Args: cobra.MinimumNArgs(1),
		Long:    "Stat shows the attributes of files; of a symbolic link those of the link itself.",
		Example: "  skeletonkey stat --json chirp://data:9094/records/land.csv",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each file, one a line")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		return s.each(args, func(server *client.Client, p, url string) error {
			st, err := server.Lstat(cmd.Context(), p)
			if err != nil {
				return err
			}
			return printInfos(a.out, []fileInfo{infoOf(p, st)}, true, asJSON)
		})
	})
	return cmd
}

// space is a file system's space as df prints it with --json, in bytes.
type space struct {
	URL       string `json:"url"`
	Total     int64  `json:"total"`
	Used      int64  `json:"used"`
	Available int64  `json:"available"`
}

func (a *app) dfCommand() *cobra.Command {
	var c connection
	var asJSON bool
	cmd := &cobra.Command{
		Use: "df URL...", Short: "Show the space of servers", Args: cobra.MinimumNArgs(1),
		Example: "  skeletonkey df chirp://data:9094/",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.Flags().BoolVar(&asJSON, "json", false, "a JSON object for each, one a line")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		table := tabwriter.NewWriter(a.out, 0, 8, 2, ' ', 0)
		if terminal(a.out) && !asJSON {
			_, _ = fmt.Fprintln(table, "TOTAL\tUSED\tAVAILABLE\tURL")
		}
		err := s.each(args, func(server *client.Client, p, url string) error {
			st, err := server.Statfs(cmd.Context(), p)
			if err != nil {
				return err
			}
			sp := space{url, st.Blocks * st.Bsize, (st.Blocks - st.Bfree) * st.Bsize, st.Bavail * st.Bsize}
			if asJSON {
				return json.NewEncoder(a.out).Encode(sp)
			}
			_, err = fmt.Fprintf(table, "%d\t%d\t%d\t%s\n", sp.Total, sp.Used, sp.Available, url)
			return err
		})
		return cmp.Or(err, table.Flush())
	})
	return cmd
}

func (a *app) hashCommand() *cobra.Command {
	var c connection
	var algorithm string
	cmd := &cobra.Command{
		Use: "hash URL...", Short: "Print checksums that the server works out", Args: cobra.MinimumNArgs(1),
		Long:    "Hash lets the server work out checksums, and prints them as sha1sum does.",
		Example: "  skeletonkey hash --algorithm md5 chirp://data:9094/records/land.csv",
	}
	c.addFlags(cmd, 10*time.Minute) // a large file takes its time
	cmd.Flags().StringVar(&algorithm, "algorithm", "sha1", "md5 or sha1")
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		if algorithm != "md5" && algorithm != "sha1" {
			return usageError{fmt.Errorf("--algorithm %q is not md5 or sha1", algorithm)}
		}
		return s.each(args, func(server *client.Client, p, url string) error {
			digest, err := server.Hash(cmd.Context(), algorithm, p)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.out, "%s  %s\n", hex.EncodeToString(digest), url)
			return err
		})
	})
	return cmd
}

func (a *app) whoamiCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "whoami URL", Short: "Print whom a server takes you for", Args: cobra.ExactArgs(1),
		Example: "  skeletonkey whoami chirp://localhost:9094",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		server, _, err := s.at(args[0])
		if err != nil {
			return err
		}
		subject, err := server.Whoami(cmd.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(a.out, subject)
		return err
	})
	return cmd
}

func (a *app) catCommand() *cobra.Command {
	var c connection
	cmd := &cobra.Command{
		Use: "cat URL...", Short: "Print files of a server", Args: cobra.MinimumNArgs(1),
		Example: "  skeletonkey cat chirp://data:9094/results/climate.tsv",
	}
	c.addFlags(cmd, commandTimeout)
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, args []string) error {
		return s.each(args, func(server *client.Client, p, url string) error {
			return cat(cmd, server, p, a.out)
		})
	})
	return cmd
}

func cat(cmd *cobra.Command, server *client.Client, p string, out *os.File) error {
	_, err := server.Getfile(cmd.Context(), p, out)
	return err
}
