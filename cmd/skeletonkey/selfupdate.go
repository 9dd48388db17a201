package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/installer"
)

// programName is this program's among published releases.
const programName = "skeletonkey"

// trialTime is how long the new program may take to tell its version.
const trialTime = 30 * time.Second

// newest is what self-update found.
type newest struct {
	Version string `json:"version"` // of this program
	Newest  string `json:"newest"`  // published
	Update  bool   `json:"update"`  // Newest is newer
	Done    bool   `json:"done"`    // this program was replaced
}

func (a *app) selfUpdateCommand() *cobra.Command {
	var o origin
	var check, asJSON bool
	cmd := &cobra.Command{
		Use: "self-update --from URL --pubkey KEY", Short: "Replace this program by its newest release", Args: cobra.NoArgs,
		Long: `Self-update looks for a newer release of this program, skeletonkey-VERSION-OS-ARCH
in a directory made by publish, verifies checksum and signature, tries whether the new
program runs here, and puts it in the place of this one by one rename. It runs when
it is called, and never by itself; --check only says what there is.`,
		Example: `  skeletonkey self-update --check --from https://host/skeletonkey
  skeletonkey self-update --from https://host/skeletonkey --pubkey skeletonkey.pub`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			resolve, err := o.options(a)
			if err != nil {
				return err
			}
			if !check && resolve.Key.IsZero() {
				return usageError{errors.New("--pubkey is missing: a program that replaces itself needs a signature (--check does not)")}
			}
			return a.selfUpdate(cmd.Context(), o, resolve, check, asJSON)
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "only say whether there is a newer release")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (a *app) selfUpdate(ctx context.Context, o origin, resolve installer.ResolveOptions, check, asJSON bool) error {
	r, err := installer.Resolve(ctx, o.from, programName, installer.Latest, o.platform, resolve)
	if err != nil {
		return softwareError(err)
	}
	found := newest{Version: version, Newest: r.Version, Update: newer(r.Version, version)}
	switch {
	case !found.Update:
		return a.show(asJSON, found, "%s is the newest version", version)
	case check:
		return a.show(asJSON, found, "version %s is there, this is %s", r.Version, version)
	}
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return err
	}
	if err := installer.ReplaceProgram(ctx, r, exe, resolve.Fetch, func(path string) error { return tryProgram(ctx, path) }); err != nil {
		return softwareError(err)
	}
	found.Done = true
	return a.show(asJSON, found, "%s is version %s now, it was %s", exe, r.Version, version)
}

// newer reports whether published is a newer version than ours; a build without a
// version is older than all.
func newer(published, ours string) bool {
	p, ok := installer.ParseVersion(published)
	v, release := installer.ParseVersion(ours)
	return ok && (!release || p.Compare(v) > 0)
}

// tryProgram refuses a program that does not run on this machine.
func tryProgram(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	if out, err := exec.CommandContext(ctx, path, "version").CombinedOutput(); err != nil {
		return fmt.Errorf("the new program does not run here: %w %.200s", err, out)
	}
	return nil
}
