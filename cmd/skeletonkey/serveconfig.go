package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"
	"github.com/spf13/pflag"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/confine"
)

// limitFlags are the flags of serve on space, time and numbers.
func (o *serveOptions) limitFlags(f *pflag.FlagSet) {
	f.Var(&o.rootQuota, "root-quota", "`SIZE` that each export may hold (K, M, G, T); 0: no limit")
	f.Var(&o.freeSpace, "free-space", "`SIZE` that writers leave free on the disk")
	f.IntVar(&o.maxClients, "max-clients", 0, "`NUMBER` of connections at a time; 0: no limit")
	f.DurationVar(&o.idle, "idle-clients", 0, "disconnect who has asked nothing for so long (default 1h)")
	f.DurationVar(&o.stalled, "stalled", 0, "give up transfers that make no progress for so long (default 1h)")
	f.DurationVar(&o.unixWait, "unix-timeout", unixWait, "how long the answer to a unix challenge may take to appear")
	f.DurationVar(&o.groupCache, "group-cache", 0, "how long a group's list is believed (default 15m)")
}

// nameFlags are the flags of serve on who is who.
func (o *serveOptions) nameFlags(f *pflag.FlagSet) {
	f.StringVar(&o.user, "user", "", "become this `USER` when started as root")
	f.StringVar(&o.passwd, "passwd", "", "`file` with the names of users for unix, instead of the system's")
	f.StringVar(&o.superuser, "superuser", "", "`SUBJECT` that may do everything, unix:root for one")
	f.StringVar(&o.groupURL, "group-url", "", "look up ACL entries group:NAME at `URL`/NAME, a list of subjects")
	f.StringSliceVar(&o.catalog.Hosts, "catalog", nil, "announce this server to a catalog server, `HOST[:PORT]`; may be repeated")
	f.BoolVar(&o.catalog.TCP, "catalog-tcp", false, "announce over TCP instead of UDP")
	f.DurationVar(&o.catalog.Interval, "catalog-update", 0, "time between two announcements (default 5m)")
	f.StringVar(&o.catalog.Name, "catalog-name", "", "`NAME` to announce (default the host's)")
	f.StringVar(&o.catalog.Owner, "owner", "", "`NAME` of the owner to announce (default the user's)")
	f.StringVar(&o.catalog.Project, "project-name", "", "`NAME` of the project to announce")
}

// shown is what is exported, for the log.
func (o *serveOptions) shown() string {
	if len(o.exports) > 0 {
		return strings.Join(o.exports, " ")
	}
	return o.root
}

func (a *app) serverConfig(o serveOptions) (c chirpd.Config, err error) {
	c = chirpd.Config{
		Root: o.root, ReadOnly: o.readOnly, InheritDefaultACL: o.inherit, Log: a.log,
		Superuser: o.superuser, GroupURL: o.groupURL, GroupCache: o.groupCache,
		RootQuota: int64(o.rootQuota), FreeSpace: int64(o.freeSpace), MaxClients: o.maxClients,
		IdleTimeout: o.idle, StallTimeout: o.stalled, Catalog: o.catalog,
	}
	c.Catalog.Version = "skeletonkey " + version
	if (o.root == "") == (len(o.exports) == 0) {
		return c, usageError{errors.New("give either --root DIR, or --export /NAME=DIR, which may be repeated")}
	}
	for _, text := range o.exports {
		name, dir, ok := strings.Cut(text, "=")
		if !ok {
			return c, usageError{fmt.Errorf("--export: %q is not of the form /NAME=DIR or /NAME=DIR:ro", text)}
		}
		dir, readOnly := strings.CutSuffix(dir, ":ro")
		c.Exports = append(c.Exports, chirpd.Export{Name: name, Dir: dir, ReadOnly: readOnly})
	}
	if o.defaultACL != "" {
		text, err := os.ReadFile(o.defaultACL)
		if err != nil {
			return c, fmt.Errorf("--default-acl: %w", err)
		}
		c.DefaultACL = string(text)
	}
	if err := o.verifiers(&c); err != nil {
		return c, err
	}
	if c.StateDir = o.state; c.StateDir == "" {
		c.StateDir, err = o.defaultState()
	}
	return c, err
}

// verifiers are the ways to authenticate that --auth names.
func (o *serveOptions) verifiers(c *chirpd.Config) error {
	name := auth.UserName
	if o.passwd != "" {
		var err error
		if name, err = auth.PasswdNames(o.passwd); err != nil {
			return fmt.Errorf("--passwd: %w", err)
		}
	}
	for method := range strings.SplitSeq(o.auth, ",") {
		switch strings.TrimSpace(method) {
		case "unix":
			c.Verifiers = append(c.Verifiers, auth.UnixVerifierNamed(o.challengeDir, cmp.Or(o.unixWait, unixWait), name))
		case "hostname":
			c.Verifiers = append(c.Verifiers, auth.HostnameVerifier(net.DefaultResolver))
		case "address":
			c.Verifiers = append(c.Verifiers, auth.AddressVerifier())
		case "ticket":
			c.Tickets = true
		default:
			return usageError{fmt.Errorf("--auth: %q is not one of unix, ticket, hostname, address", method)}
		}
	}
	return nil
}

// systemState is where a server that gives up root keeps its state: its user may have no
// home.
const systemState = "/var/lib/skeletonkey"

// privateState holds the state of all servers. No client reaches what bears such a name,
// so that a home may be exported, state and all.
const privateState = confine.PrivatePrefix + "serve"

// defaultState is a place of its own for what is exported, so that two servers of one
// user never share tickets.
func (o *serveOptions) defaultState() (string, error) {
	what, name := "", "exports"
	if o.root != "" {
		abs, err := filepath.Abs(o.root)
		if err != nil {
			return "", err
		}
		what, name = abs, filepath.Base(abs)
	} else {
		what = strings.Join(o.exports, "\n")
	}
	sum := sha256.Sum256([]byte(what))
	home := filepath.Join(xdg.StateHome, "skeletonkey")
	if o.user != "" && os.Geteuid() == 0 {
		home = systemState
	}
	return filepath.Join(home, privateState, name+"-"+hex.EncodeToString(sum[:6])), nil
}
