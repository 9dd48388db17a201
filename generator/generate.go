package generator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"skeletonkey/chirpd/client"
	"skeletonkey/generator/job"
)

// Request is one job to be written.
type Request struct {
	Job     *job.Job       // checked; the runtime's location and checksums are known, the ticket is not
	Server  *client.Client // of the Job's server, by somebody who may use the directories; not used when the Job has none
	Output  string         // file to write
	Version string         // of skeletonkey
}

// Generate asks for the ticket and writes the job script. It records the ticket in the Job. On failure
// no script is left and the ticket is deleted; access lists and directories stay as they were made.
func Generate(ctx context.Context, r Request) error {
	parts := Parts{Job: r.Job, Version: r.Version}
	if err := r.Job.Validate(); err != nil {
		return err
	}
	if err := bringKeys(ctx, r.Job); err != nil {
		return err
	}
	if file := r.Job.UserProxy; file != "" {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("user_proxy: %w", err)
		}
		if len(content) == 0 {
			return fmt.Errorf("user_proxy: %s is empty", file)
		}
		parts.UserProxy = content
	}
	if len(r.Job.Dirs) == 0 {
		return write(parts, r.Output)
	}
	ticket, err := NewTicket(ctx, r.Server, r.Job)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; paths in [Directories] count from export_base", err)
	}
	if err != nil {
		return err
	}
	parts.Ticket = ticket.Format()
	if err := write(parts, r.Output); err != nil {
		return errors.Join(err, revoke(ctx, r.Server, ticket.Digest()))
	}
	return nil
}

func write(p Parts, output string) error {
	script, err := Script(p)
	if err != nil {
		return err
	}
	return WriteFile(output, script)
}
