package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"skeletonkey/chirpd/client"
	"skeletonkey/generator"
	"skeletonkey/generator/job"
)

func (a *app) generateCommand() *cobra.Command {
	var c connection
	var file, output string
	var check bool
	cmd := &cobra.Command{
		Use: "generate -c JOB.ini -o JOB.sh", Short: "Turn a job description into a job script", Args: cobra.NoArgs,
		Long: `Generate reads a job file, asks the data's server for a ticket with just the
rights and the time that the job needs, and writes one shell script. The script
runs on any node that has a shell, one of curl, wget and python3, and a network.

The script holds the ticket: whoever can read it has the job's rights until the
ticket expires. It is written with mode 0700.

A job file, at least:
  [Server]
  location = data.example:9094
  [Directories]
  export_base = /data
  read  = records
  write = results
  [Application]
  location  = http://data.example:9095/app.tar.gz
  script    = app/run.sh
  arguments = records results
  [Runtime]
  location = http://data.example:9095/dist`,
		Example: `  skeletonkey generate -c job.ini -o job.sh
  skeletonkey generate --check -c job.ini`,
	}
	c.addFlags(cmd, commandTimeout)
	f := cmd.Flags()
	f.StringVarP(&file, "config-file", "c", "", "the job `file` (required)")
	f.StringVarP(&output, "output", "o", "", "the script to write (default: the job file's name with .sh)")
	f.BoolVar(&check, "check", false, "only check the job file; nothing is contacted or written")
	_ = cmd.MarkFlagRequired("config-file") // fails only for a flag that does not exist
	cmd.RunE = a.onServers(&c, func(cmd *cobra.Command, s *servers, _ []string) error {
		j, err := loadJob(file)
		if err != nil || check {
			return err
		}
		if output == "" {
			output = file[:len(file)-len(filepath.Ext(file))] + ".sh"
		}
		return a.generate(cmd.Context(), s, j, output)
	})
	return cmd
}

func loadJob(file string) (*job.Job, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = "/nonexistent" // then there is no older installation's configuration
	}
	defaults, err := job.UserDefaults(filepath.Join(home, ".chirp"), os.Getuid())
	if err != nil {
		return nil, err
	}
	j, err := job.Load(file, defaults)
	if err != nil {
		return nil, usageError{err}
	}
	return j, nil
}

func (a *app) generate(ctx context.Context, s *servers, j *job.Job, output string) error {
	if err := a.findRelease(ctx, &j.Application); err != nil {
		return err
	}
	if err := generator.FindRuntime(ctx, &j.Runtime); err != nil {
		return err
	}
	var server *client.Client
	if len(j.Dirs) > 0 {
		var err error
		if server, _, err = s.at("chirp://" + j.Server); err != nil {
			return err
		}
	}
	if err := generator.Generate(ctx, generator.Request{Job: j, Server: server, Output: output, Version: version}); err != nil {
		return err
	}
	a.log.Debug("wrote the job script", "file", output, "ticket", j.Ticket.Digest)
	if terminal(a.err) && !a.quiet {
		_, _ = fmt.Fprintf(a.err, "wrote %s; run it: sh %s\n", output, output)
	}
	return nil
}
