package chirpd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"skeletonkey/chirpd/auth"
)

// Server exports one directory tree. Make it with New, run it with Serve (several
// times for several listeners), stop it with Shutdown or Close.
type Server struct {
	conf      Config
	exports   []*export
	groups    groups
	front     *export     // shows the exports where they have names, else nil
	tickets   *auth.Store // nil without Config.Tickets
	verifiers []auth.Verifier
	uuid      string // in catalogs
	began     time.Time
	total     totals
	oddNames  atomic.Bool // a name that no line can carry has been logged

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup // one for each goroutine

	mu        sync.Mutex // guards what follows
	stopping  bool       // by Shutdown or Close
	listeners map[net.Listener]struct{}
	sessions  map[*session]struct{}
	perAddr   map[string]int
}

// totals are what all sessions together have done.
type totals struct{ requests, received, sent atomic.Int64 }

// New opens the export and the state. The caller ends the Server with Close.
func New(conf Config) (*Server, error) {
	conf.setDefaults()
	if err := conf.check(); err != nil {
		return nil, err
	}
	s := &Server{
		conf: conf, began: time.Now(), verifiers: conf.Verifiers,
		listeners: make(map[net.Listener]struct{}),
		sessions:  make(map[*session]struct{}),
		perAddr:   make(map[string]int),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.open(); err != nil {
		s.stop()
		_ = s.closeExports() // the first error counts
		return nil, fmt.Errorf("chirpd: %w", err)
	}
	return s, nil
}

// open is the part of New that may fail halfway.
func (s *Server) open() (err error) {
	if err := s.openExports(); err != nil {
		return err
	}
	if err := s.groups.open(&s.conf); err != nil {
		return err
	}
	if len(s.conf.Catalog.Hosts) > 0 {
		if err := s.identify(); err != nil {
			return err
		}
	}
	if !s.conf.Tickets {
		return nil
	}
	if s.tickets, err = auth.OpenStore(filepath.Join(s.conf.StateDir, "tickets")); err != nil {
		return err
	}
	if s.conf.Root != "" {
		left, err := auth.OpenExportStore(s.conf.Root, s.conf.ReadOnly)
		if err != nil {
			return err
		}
		s.tickets.With(left)
	}
	s.verifiers = append(s.verifiers[:len(s.verifiers):len(s.verifiers)], auth.TicketVerifier(s.tickets))
	return nil
}

// Serve accepts connections from l until ctx ends, l fails, or the Server is stopped;
// it closes l. When ctx ends, everything ends, as by Close, for which the caller still
// has to wait. After an orderly end, ctx's included, it returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if !s.addListener(l) {
		l.Close()
		return fmt.Errorf("chirpd: serve %v: %w", l.Addr(), net.ErrClosed)
	}
	defer s.wg.Done()
	defer s.removeListener(l)
	unhook := context.AfterFunc(ctx, func() {
		s.stop()
		s.interrupt()
	})
	defer unhook()
	announcing, stop := context.WithCancel(s.ctx)
	defer stop()
	s.wg.Go(func() { s.announce(announcing, l) })
	for pause := time.Duration(0); ; {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(conn)
		case s.isStopping():
			return nil
		case isTemporary(err):
			// Out of descriptors, mostly: those of clients that leave come back.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.conf.Log.Warn("cannot accept a connection; trying again", "err", err, "in", pause)
			s.sleep(pause)
		default:
			return fmt.Errorf("chirpd: accept on %v: %w", l.Addr(), err)
		}
	}
}

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

func (s *Server) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.ctx.Done():
	}
}

// addListener refuses when the Server has been stopped.
func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[l] = struct{}{}
	s.wg.Add(1)
	return true
}

func (s *Server) removeListener(l net.Listener) {
	l.Close()
	s.mu.Lock()
	delete(s.listeners, l)
	s.mu.Unlock()
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// admit starts a session for a connection, unless there are too many.
func (s *Server) admit(conn net.Conn) {
	c := newSession(s, conn)
	s.mu.Lock()
	full := s.perAddr[c.host] >= s.conf.MaxPerAddress || s.conf.MaxClients > 0 && len(s.sessions) >= s.conf.MaxClients
	if !s.stopping && !full {
		s.perAddr[c.host]++
		s.sessions[c] = struct{}{}
		s.wg.Add(1)
		go func() {
			defer s.wg.Done()
			defer s.dismiss(c)
			c.run()
		}()
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	conn.Close()
	if full {
		s.conf.Log.Warn("connection refused: too many", "peer", c.host, "limit", s.conf.MaxClients, "per address", s.conf.MaxPerAddress)
	}
}

func (s *Server) dismiss(c *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, c)
	if s.perAddr[c.host]--; s.perAddr[c.host] == 0 {
		delete(s.perAddr, c.host)
	}
}

// halt closes the listeners and applies end to every session.
func (s *Server) halt(end func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.sessions {
		end(c)
	}
}

// interrupt ends everything without waiting for it.
func (s *Server) interrupt() { s.halt((*session).cut) }

// Shutdown stops accepting, lets each client have the replies to what it has asked,
// and closes the Server. When ctx ends first, what is left is cut off, and ctx's
// error returned.
func (s *Server) Shutdown(ctx context.Context) error {
	s.halt((*session).drain)
	gone := make(chan struct{})
	go func() { // ends as Close waits for the same
		s.wg.Wait()
		close(gone)
	}()
	var err error
	select {
	case <-gone:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if e := s.Close(); err == nil {
		err = e
	}
	<-gone
	return err
}

// Close ends all connections at once, waits for every goroutine, and gives up the
// export. It may be called twice.
func (s *Server) Close() error {
	s.stop()
	s.interrupt()
	s.wg.Wait()
	return s.closeExports()
}
