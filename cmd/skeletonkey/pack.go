package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"skeletonkey/generator/job"
	"skeletonkey/installer"
)

// softwareCommands are those of package installer.
func (a *app) softwareCommands() []*cobra.Command {
	return []*cobra.Command{
		a.packCommand(), a.unpackCommand(), a.verifyCommand(), a.publishCommand(),
		a.installCommand(), a.rollbackCommand(), a.selfUpdateCommand(),
	}
}

// softwareError gives package installer's errors their exit codes.
func softwareError(err error) error {
	var fetch *installer.FetchError
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	for _, refused := range []error{
		installer.ErrChecksum, installer.ErrSignature, installer.ErrFormat, installer.ErrCorrupt, installer.ErrTruncated,
		installer.ErrTrailing, installer.ErrUnsafe, installer.ErrLimit, installer.ErrTooLarge,
	} {
		if errors.Is(err, refused) {
			return exitError{job.ExitBadDownload, err}
		}
	}
	if errors.As(err, &fetch) && fetch.Retryable {
		return exitError{job.ExitUnreachable, err}
	}
	return err
}

// set tells the whole state at once, as package installer does; a total below 0 is
// not known.
func (p *progress) set(done, total int64) {
	if p.bar != nil {
		p.bar.SetTotal(max(total, done+1), false) // a full bar would take itself away
		p.bar.SetCurrent(done)
	}
}

// unpacked is set for an archive of that size.
func (p *progress) unpacked(archive string) func(installer.Summary) {
	if p.bar == nil {
		return nil
	}
	var size int64
	if st, err := os.Stat(archive); err == nil {
		size = st.Size()
	}
	return func(s installer.Summary) { p.set(s.CompressedBytes, size) }
}

// show prints a result: as JSON, or a line.
func (a *app) show(asJSON bool, result any, format string, args ...any) error {
	if asJSON {
		return json.NewEncoder(a.out).Encode(result)
	}
	_, err := fmt.Fprintf(a.out, format+"\n", args...)
	return err
}

func (a *app) packCommand() *cobra.Command {
	var output string
	var opts installer.PackOptions
	var asJSON bool
	cmd := &cobra.Command{
		Use: "pack DIR -o FILE.tar.zst", Short: "Make an archive of a directory", Args: cobra.ExactArgs(1),
		Long: `Pack makes an archive of a directory, compressed as the file's extension says
(.tar.zst, .tar.gz, .tar.xz, .tar) on all processors. The same content gives the
same bytes: members are sorted, their owner is 0, their time is that of
SOURCE_DATE_EPOCH (seconds since 1970), else the start of 2020. Hard links and
symbolic links are kept, extended attributes and set-ID bits are not, holes of
sparse files become zeros. A file that changes meanwhile, and what unpack would
refuse, is an error.

The archive appears when it is whole, and SHA256SUMS beside it gets its line.`,
		Example: `  skeletonkey pack climate -o climate-1.10.0.tar.zst
  skeletonkey pack --top climate ./build -o release/climate-1.10.0-linux-amd64.tar.xz`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Time, err = installer.SourceDateEpoch(); err != nil {
				return usageError{err}
			}
			opts.Log = a.log
			bar := a.progress()
			if bar.bar != nil {
				opts.Progress = bar.set
			}
			got, err := installer.Pack(cmd.Context(), args[0], output, opts)
			bar.end()
			if err != nil {
				return softwareError(err)
			}
			return a.show(asJSON, got, "%s  %s", got.SHA256, got.Path)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&output, "output", "o", "", "the archive's `file` (required)")
	f.StringVar(&opts.Top, "top", "", "`name` of the directory in the archive (default: that of DIR; \".\" for none)")
	f.BoolVar(&opts.KeepTimes, "keep-times", false, "keep the files' own times (whole seconds, none after SOURCE_DATE_EPOCH)")
	f.BoolVar(&opts.NoSums, "no-sums", false, "leave SHA256SUMS alone")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	_ = cmd.MarkFlagRequired("output") // fails only for a flag that does not exist
	return cmd
}

func (a *app) unpackCommand() *cobra.Command {
	var opts installer.UnpackOptions
	var into, asJSON bool
	cmd := &cobra.Command{
		Use: "unpack FILE DIR", Short: "Unpack an archive, safely", Args: cobra.ExactArgs(2),
		Long: `Unpack extracts a tar archive (plain, gz, xz, zst or bz2; found by content) into
a new directory, which appears when all of it is there, or not at all. Nothing is
written outside it, whatever the archive says: absolute names, "..", links that
lead out, and devices are refused; set-ID bits and owners are not restored.`,
		Example: `  skeletonkey unpack climate-1.10.0.tar.zst climate
  skeletonkey unpack --strip-components 1 --replace app.tgz app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if into && opts.Replace {
				return usageError{errors.New("--into and --replace exclude each other")}
			}
			bar := a.progress()
			opts.Progress = bar.unpacked(args[0])
			unpack := installer.UnpackTo
			if into {
				unpack = installer.UnpackFile
			}
			sum, err := unpack(cmd.Context(), args[0], args[1], opts)
			bar.end()
			if err != nil {
				return softwareError(err)
			}
			got := installer.Packed{Path: args[1], Files: sum.Files, Dirs: sum.Dirs, Symlinks: sum.Symlinks,
				Hardlinks: sum.Hardlinks, Bytes: sum.Bytes, Size: sum.CompressedBytes}
			return a.show(asJSON, got, "%s: %d files, %d directories, %d links, %d bytes",
				args[1], sum.Files, sum.Dirs, sum.Symlinks+sum.Hardlinks, sum.Bytes)
		},
	}
	f := cmd.Flags()
	f.IntVar(&opts.StripComponents, "strip-components", 0, "leave out that many leading directories of each name")
	f.BoolVar(&opts.Replace, "replace", false, "let DIR exist: the new directory takes its place in one step")
	f.BoolVar(&opts.NoSync, "no-sync", false, "do not wait until all is on the disk: for scratch directories")
	f.BoolVar(&into, "into", false, "add to DIR, which exists; a failure then leaves a part there")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (a *app) verifyCommand() *cobra.Command {
	var opts installer.VerifyOptions
	var pubkey string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify FILE", Short: "Check an archive's checksum, signature and content", Args: cobra.ExactArgs(1),
		Long: `Verify reads an archive to its end and checks what there is to check: its SHA-256
against --sha256 or SHA256SUMS beside it, the minisign signature of either
(FILE.minisig, SHA256SUMS.minisig) with --pubkey, and that unpack would take all of
it. With --pubkey a good signature is required; where a signature lies there and
no key is given, that is an error unless --unsigned says that it does not matter.`,
		Example: `  skeletonkey verify climate-1.10.0.tar.zst
  skeletonkey verify --pubkey climate.pub climate-1.10.0.tar.zst`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if opts.Key, err = publicKey(pubkey); err != nil {
				return err
			}
			bar := a.progress()
			opts.Progress = bar.unpacked(args[0])
			got, err := installer.Verify(cmd.Context(), args[0], opts)
			bar.end()
			if err != nil {
				return softwareError(err)
			}
			signed := "not checked"
			if got.Signed {
				signed = "good"
			}
			return a.show(asJSON, got, "%s: good; SHA-256 %s, signature %s, %d files",
				filepath.Base(got.Path), got.SHA256, signed, got.Summary.Files)
		},
	}
	f := cmd.Flags()
	f.StringVar(&opts.SHA256, "sha256", "", "the `checksum` that the archive must have, in hexadecimal")
	f.StringVar(&pubkey, "pubkey", "", "minisign public `key`, or a file with it")
	f.BoolVar(&opts.Unsigned, "unsigned", false, "do not insist on a key where a signature is")
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// publicKey reads --pubkey; none is the zero key.
func publicKey(s string) (installer.PublicKey, error) {
	if s == "" {
		return installer.PublicKey{}, nil
	}
	k, err := installer.ParsePublicKey(s)
	if err != nil {
		return k, usageError{fmt.Errorf("--pubkey: %w", err)}
	}
	return k, nil
}
