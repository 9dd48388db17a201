package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"skeletonkey/installer"
)

// passwordEnv holds the password of the signing key where nobody can be asked.
const passwordEnv = "SKELETONKEY_KEY_PASSWORD"

// publishFlags is what the flags of publish say.
type publishFlags struct {
	key, newKey      string
	replace, protect bool
	asJSON           bool
}

func (a *app) publishCommand() *cobra.Command {
	var o publishFlags
	cmd := &cobra.Command{
		Use: "publish DIR [ARCHIVE...]", Short: "Make a directory of releases that a web server can serve",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.newKey != "" && len(args) == 0 {
				return nil
			}
			return cobra.MinimumNArgs(1)(cmd, args)
		},
		Long: `Publish writes, for the archives in DIR, what install, self-update and a job's
"version = latest" read: SHA256SUMS, its minisign signature and index.json. Any
static web server can serve DIR, "serve --publish" too. ARCHIVEs are copied into DIR
first. Archives are named NAME-VERSION.tar.zst or NAME-VERSION-OS-ARCH.tar.zst, with
.gz, .xz or nothing in the place of .zst, as well.

With --key the checksums are signed; a directory that is signed stays so. A key is
made by --new-key FILE (the public one is in FILE.pub; --protect asks for a password).
The password is read from $SKELETONKEY_KEY_PASSWORD, else from the terminal.

A release that was published does not change: another content needs another
version, or --replace. Publishing the same again changes nothing.`,
		Example: `  skeletonkey publish --new-key release.key
  skeletonkey publish --key release.key ~/software climate-1.10.0.tar.zst`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.publish(cmd, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.key, "key", "", "`file` of the private key to sign with")
	f.StringVar(&o.newKey, "new-key", "", "make a key in this `file` first, and sign with it")
	f.BoolVar(&o.protect, "protect", false, "encrypt the new key with a password")
	f.BoolVar(&o.replace, "replace", false, "let a published archive have another content")
	f.BoolVar(&o.asJSON, "json", false, "print the index as JSON")
	return cmd
}

func (a *app) publish(cmd *cobra.Command, o publishFlags, args []string) (err error) {
	if len(args) > 0 {
		if err := keyOutside(args[0], o.key+o.newKey); err != nil {
			return err
		}
	}
	opts := installer.RepositoryOptions{Replace: o.replace, Log: a.log}
	switch {
	case o.key != "" && o.newKey != "":
		return usageError{errors.New("--key and --new-key exclude each other")}
	case o.newKey != "":
		opts.Key, err = a.newKey(o)
	case o.key != "":
		opts.Key, err = installer.ReadKey(o.key, a.password)
	}
	if err != nil || len(args) == 0 {
		return err
	}
	opts.Sign = o.key != "" || o.newKey != ""
	opts.Add = args[1:]
	index, err := installer.UpdateRepository(cmd.Context(), args[0], opts)
	if err != nil {
		return softwareError(err)
	}
	releases := 0
	for _, list := range index {
		releases += len(list)
	}
	if !opts.Sign {
		a.hint("the checksums are not signed; --new-key FILE makes a key")
	}
	return a.show(o.asJSON, index, "%s: %d releases of %d names", args[0], releases, len(index))
}

// keyOutside refuses a private key in the directory that everybody is to read.
func keyOutside(dir, key string) error {
	if key == "" {
		return nil
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	at, err := filepath.EvalSymlinks(filepath.Dir(key))
	if err != nil {
		return err
	}
	dir, err1 := filepath.Abs(dir)
	at, err2 := filepath.Abs(at)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if below, err := filepath.Rel(dir, at); err == nil && filepath.IsLocal(below) {
		return usageError{fmt.Errorf("the private key %s lies in %s, where everybody would fetch it: keep it elsewhere", key, dir)}
	}
	return nil
}

func (a *app) newKey(o publishFlags) (k installer.PrivateKey, err error) {
	password := ""
	if o.protect {
		if password, err = a.password(); err != nil {
			return k, err
		}
		if password == "" {
			return k, usageError{errors.New("--protect: the password is empty")}
		}
	}
	if k, err = installer.NewKey(o.newKey, password); err != nil {
		return k, err
	}
	_, err = fmt.Fprintf(a.err, "public key: %s (also in %s.pub)\n", k.Public(), o.newKey)
	return k, err
}

// password is the signing key's.
func (a *app) password() (string, error) {
	if password, ok := os.LookupEnv(passwordEnv); ok {
		return password, nil
	}
	if !terminal(a.in) {
		return "", fmt.Errorf("it needs a password: set %s, or call this on a terminal", passwordEnv)
	}
	_, _ = fmt.Fprint(a.err, "Password of the key: ")
	text, err := term.ReadPassword(int(a.in.Fd()))
	_, _ = fmt.Fprintln(a.err)
	return string(text), err
}
