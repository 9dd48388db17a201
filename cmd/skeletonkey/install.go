package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/adrg/xdg"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"skeletonkey/installer"
)

// origin is where releases come from, as flags say.
type origin struct {
	from, pubkey, platform string
	pre                    bool
}

func (o *origin) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.from, "from", "", "`URL` or path of the published directory")
	f.StringVar(&o.pubkey, "pubkey", "", "minisign public `key`, or a file with it: the checksums must be signed")
	f.BoolVar(&o.pre, "pre", false, "let the latest be a pre-release")
	f.StringVar(&o.platform, "platform", "", "`OS-ARCH` (default: this machine's)")
}

func (o *origin) options(a *app) (opts installer.ResolveOptions, err error) {
	if o.from == "" {
		return opts, usageError{errors.New("--from URL is missing: where are the releases? $SKELETONKEY_FROM may say it, too")}
	}
	opts.Prereleases, opts.Fetch.Log = o.pre, a.log
	opts.Key, err = publicKey(o.pubkey)
	return opts, err
}

func (a *app) installCommand() *cobra.Command {
	var o origin
	var prefix, version string
	var noChecksum, list, asJSON bool
	cmd := &cobra.Command{
		Use: "install --from URL NAME", Short: "Install a release of some software", Args: cobra.MaximumNArgs(1),
		Long: `Install finds a release in a directory made by publish, or in any web server's
listing of archives named NAME-VERSION.tar.gz and the like, verifies its checksum
and, with --pubkey, the signature, and unpacks it into PREFIX/NAME/VERSION. Then
PREFIX/NAME/current leads to it, in one step. A directory NAME or NAME-... that
holds all of the archive is left out of the path.

The version before stays, for "skeletonkey rollback NAME"; older ones are removed.
1.10.0 is newer than 1.9.0; pre-releases such as 2.0.0-rc1 count only with --pre, or
by their number. Asking for the latest never brings back an older version.`,
		Example: `  skeletonkey install --from http://data.example:9095 climate
  skeletonkey install --from https://host/soft --pubkey soft.pub --version 1.9.0 climate
  skeletonkey install --list`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				return a.listInstalled(prefix, asJSON)
			}
			if len(args) == 0 {
				return usageError{errors.New("which NAME is to be installed?")}
			}
			resolve, err := o.options(a)
			if err != nil {
				return err
			}
			bar := a.progress()
			opts := installer.InstallOptions{Prefix: prefix, From: o.from, Version: version, Platform: o.platform,
				Resolve: resolve, NoChecksum: noChecksum, Log: a.log}
			if bar.bar != nil {
				opts.Progress = bar.set
			}
			now, err := installer.Install(cmd.Context(), args[0], opts)
			bar.end()
			return a.showInstalled(asJSON, now, err)
		},
	}
	o.addFlags(cmd.Flags())
	f := cmd.Flags()
	addPrefix(f, &prefix)
	f.StringVar(&version, "version", installer.Latest, "the `version`, or latest")
	f.BoolVar(&noChecksum, "no-checksum", false, "install what has no published checksum")
	f.BoolVar(&list, "list", false, "list what is installed")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func addPrefix(f *pflag.FlagSet, prefix *string) {
	f.StringVar(prefix, "prefix", filepath.Join(xdg.DataHome, "skeletonkey", "software"), "`directory` of all installed software")
}

func (a *app) showInstalled(asJSON bool, now installer.Installed, err error) error {
	if err != nil {
		return softwareError(err)
	}
	state := "was there already"
	if now.Changed {
		state = "is in use now"
	}
	return a.show(asJSON, now, "%s %s %s: %s", now.Name, now.Version, state, now.Path)
}

// listInstalled prints a line for each name: name, version, previous version, path.
func (a *app) listInstalled(prefix string, asJSON bool) error {
	all, err := installer.List(prefix)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(a.out).Encode(append([]installer.Installed{}, all...))
	}
	for _, i := range all {
		if _, err := fmt.Fprintf(a.out, "%s\t%s\t%s\t%s\n", i.Name, i.Version, i.Previous, i.Path); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) rollbackCommand() *cobra.Command {
	var prefix string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "rollback NAME", Short: "Go back to the version that was installed before", Args: cobra.ExactArgs(1),
		Long: `Rollback makes the version of NAME that was in use before the present one the
one in use again, in one step. Called twice, it changes nothing.`,
		Example: "  skeletonkey rollback climate",
		RunE: func(cmd *cobra.Command, args []string) error {
			now, err := installer.Rollback(cmd.Context(), prefix, args[0])
			return a.showInstalled(asJSON, now, err)
		},
	}
	addPrefix(cmd.Flags(), &prefix)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
