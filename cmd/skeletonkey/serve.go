package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"skeletonkey/chirpd"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
	"skeletonkey/cmd/skeletonkey/internal/dist"
)

// drainTime is how long a server that was told to stop waits for requests under
// way, in all.
const drainTime = 10 * time.Second

// unixWait is how long a unix challenge's answer may take to appear; so in the
// real server, for network file systems.
const unixWait = 5 * time.Second

// serveOptions is what the flags of serve say.
type serveOptions struct {
	root, listen, dist, publish string
	exports                     []string // /NAME=DIR or /NAME=DIR:ro, instead of root
	state, auth, challengeDir   string
	defaultACL, portFile        string
	inherit, readOnly           bool

	passwd, superuser, groupURL string
	user                        string // to become when started as root
	unixWait, idle, stalled     time.Duration
	groupCache                  time.Duration
	rootQuota, freeSpace        size
	maxClients                  int
	catalog                     chirpd.Catalog

	ready func(chirp, web net.Addr) // told when both listen; may be nil
}

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve --root DIR | --export /NAME=DIR...", Short: "Export a directory over the Chirp protocol", Args: cobra.NoArgs,
		Long: `Serve exports one directory to clients of the Chirp protocol: the commands of
this program, its mounts, and the Chirp tools of cctools. It needs no rights
beyond those of the user who starts it, and it runs until it is told to stop.

Who may do what is said by ACLs: the file .__acl of a directory, changed by
"skeletonkey acl". A directory without one gives everything to the user who runs
the server and the owner of the exported directory, and nothing to anybody else;
nothing is written into the data until someone sets an ACL.

With --export, several directories are shown under one root, each confined on
its own. Called as chirp_server (by a link), this program takes that server's
options.

With --dist it also serves over HTTP what nodes fetch: /dist/ holds this program
and its checksums, and what lies in the directory given by --publish is at /.

The server announces itself nowhere unless --catalog says so.`,
		Example: `  skeletonkey serve --root /data
  skeletonkey serve --root /data --listen :9094 --dist :9095 --publish ~/software
  skeletonkey serve --root /data --listen 127.0.0.1:0 --port-file /tmp/port
  skeletonkey serve --export /data=/srv/data:ro --export /scratch=/srv/scratch`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.root, "root", "r", "", "the `directory` to export")
	f.StringArrayVar(&o.exports, "export", nil, "`/NAME=DIR[:ro]` to export under a root of several; may be repeated")
	f.StringVar(&o.listen, "listen", ":"+strconv.Itoa(wire.DefaultPort), "`ADDRESS:PORT` to serve on; port 0 takes a free one")
	f.StringVar(&o.dist, "dist", "", "`ADDRESS:PORT` on which nodes fetch this program over HTTP")
	f.StringVar(&o.publish, "publish", "", "a `directory` of more files to serve on the --dist address")
	f.StringVar(&o.state, "state", "", "`directory` of the server's own state, its tickets (default $XDG_STATE_HOME/skeletonkey/...)")
	f.StringVarP(&o.auth, "auth", "a", "unix,ticket", "ways to authenticate: unix, ticket, hostname, address")
	f.StringVarP(&o.defaultACL, "default-acl", "A", "", "`file` with the ACL of directories that have none")
	f.BoolVar(&o.inherit, "inherit-default-acl", false, "a directory without an ACL has that of the nearest one above")
	f.StringVarP(&o.portFile, "port-file", "Z", "", "write the port number to this `file` when ready")
	f.BoolVar(&o.readOnly, "read-only", false, "refuse every change")
	f.StringVar(&o.challengeDir, "challenge-dir", auth.DefaultChallengeDir, "`directory` of unix challenges, shared with the clients")
	o.limitFlags(f)
	o.nameFlags(f)
	return cmd
}

// serve runs the servers until ctx ends, and then lets requests under way finish.
func (a *app) serve(ctx context.Context, o serveOptions) error {
	config, err := a.serverConfig(o)
	if err != nil {
		return err
	}
	ln, err := listen(o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	defer ln.Close()
	if o.user != "" { // who may not be able to write it; connections wait
		if err := writePort(o.portFile, ln); err != nil {
			return err
		}
	}
	if err := become(o.user, config.StateDir); err != nil {
		return err
	}
	server, err := chirpd.New(config)
	if err != nil {
		return err
	}
	defer server.Close()
	web, err := a.startDist(o)
	if err != nil {
		return err
	}
	defer web.close()
	if o.user == "" {
		if err := writePort(o.portFile, ln); err != nil {
			return err
		}
	}
	a.log.Info("serving", "root", o.shown(), "address", ln.Addr().String(), "auth", o.auth, "dist", web.address())
	if o.ready != nil {
		o.ready(ln.Addr(), web.addr())
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(context.WithoutCancel(ctx), ln) })
	group.Go(func() error { return web.serve() })
	group.Go(func() error {
		<-ctx.Done()
		drain, cancel := context.WithTimeout(context.Background(), drainTime)
		defer cancel()
		return errors.Join(web.shutdown(drain), server.Shutdown(drain))
	})
	err = group.Wait()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	a.log.Info("stopped", "address", ln.Addr().String())
	return err
}

func writePort(file string, ln net.Listener) error {
	if file == "" {
		return nil
	}
	port := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	if err := renameio.WriteFile(file, []byte(port+"\n"), 0o644); err != nil {
		return fmt.Errorf("--port-file: %w", err)
	}
	return nil
}

// webServer is the --dist listener; its zero value is none.
type webServer struct {
	handler *dist.Handler
	http    *http.Server
	ln      net.Listener
}

func (a *app) startDist(o serveOptions) (*webServer, error) {
	if o.dist == "" {
		if o.publish != "" {
			return nil, usageError{errors.New("--publish needs --dist ADDRESS:PORT to serve it on")}
		}
		return &webServer{}, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	handler, err := dist.New(exe, o.publish, a.log)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", o.dist)
	if err != nil {
		handler.Close()
		return nil, fmt.Errorf("--dist: %w", err)
	}
	return &webServer{handler, &http.Server{Handler: handler, ReadHeaderTimeout: 30 * time.Second}, ln}, nil
}

func (w *webServer) addr() net.Addr {
	if w.ln == nil {
		return nil
	}
	return w.ln.Addr()
}

func (w *webServer) address() string {
	if w.ln == nil {
		return ""
	}
	return w.ln.Addr().String()
}

func (w *webServer) serve() error {
	if w.ln == nil {
		return nil
	}
	if err := w.http.Serve(w.ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (w *webServer) shutdown(ctx context.Context) error {
	if w.ln == nil {
		return nil
	}
	return w.http.Shutdown(ctx)
}

// close frees what a server that may never have served holds.
func (w *webServer) close() {
	if w.ln != nil {
		_ = w.http.Close()
		_ = w.ln.Close()
		w.handler.Close()
	}
}
