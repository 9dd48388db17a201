package chirpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// inputBuffer is the size of a session's read buffer, in bytes: room for a good many
// pipelined requests, and cheap for a thousand idle clients. Data goes by it.
const inputBuffer = 4 << 10

// session is one client's connection. All but what mu guards belongs to the goroutine
// that runs it.
type session struct {
	srv  *Server
	conn net.Conn
	raw  syscall.RawConn // of conn's socket; nil where it is none
	host string          // the peer's address without the port
	log  *slog.Logger

	in    *wire.Reader // reads through session.Read
	out   output
	phase phase
	limit deadline // for reading

	subject auth.Subject
	who     string // the subject whose rights the client has: a ticket's owner
	lent    []lent // by the client's ticket and those by which it was made; all count
	files   fileTable
	near    near
	looking bool // the request is one of those that near may stay for

	body     int64                                    // bytes of the request's data that have not been read yet
	replied  bool                                     // the request's reply has begun
	ending   bool                                     // the connection ends after this request, by the protocol
	tallied  struct{ requests, received, sent int64 } // in the server's totals
	requests int64
	refused  int64
	received int64 // bytes

	mu       sync.Mutex // guards what follows
	waiting  bool       // for the next request, with all replies sent
	lastCall time.Time  // when set: no request is waited for beyond it
}

// phase is what a session's reads are for; it decides how long they may take.
type phase uint8

const (
	authenticating phase = iota
	betweenRequests
	inRequest
)

var (
	errStopped   = errors.New("the server stops")
	errClientBye = errors.New("the client said good-bye")
)

func newSession(srv *Server, conn net.Conn) *session {
	s := &session{srv: srv, conn: conn, host: conn.RemoteAddr().String()}
	if host, _, err := net.SplitHostPort(s.host); err == nil {
		s.host = host
	}
	s.log = srv.conf.Log.With("peer", conn.RemoteAddr().String())
	if c, ok := conn.(syscall.Conn); ok {
		if raw, err := c.SyscallConn(); err == nil {
			s.raw = raw
			tune(raw, s.host)
		}
	}
	s.in = wire.NewReader(s, inputBuffer)
	s.out = output{conn: conn, limit: deadline{span: srv.conf.StallTimeout}}
	s.files.max = srv.conf.MaxOpen
	return s
}

// tune keeps a loopback connection off congestion controls that measure the path
// (bbr): they lose up to 40 % there. Where it may not be set nothing is lost.
func tune(raw syscall.RawConn, host string) {
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptString(int(fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic")
	})
}

// cut ends the session at once, from any goroutine.
func (s *session) cut() { s.conn.Close() }

// drainGrace is for how long a session of a server that stops still takes requests:
// those that were on their way.
const drainGrace = 100 * time.Millisecond

// drain lets the session end when what the client has sent is answered, from any
// goroutine.
func (s *session) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastCall = time.Now().Add(drainGrace)
	if s.waiting {
		s.conn.SetReadDeadline(s.lastCall)
	}
}

// run is the session's life.
func (s *session) run() {
	began := time.Now()
	defer s.conn.Close()
	defer s.out.release()
	defer s.files.closeAll()
	defer s.dropNear()
	err := s.guarded(s.serve)
	s.tally()
	s.log.Info("connection ended", "seconds", time.Since(began).Seconds(), "requests", s.requests, "refused", s.refused,
		"in", s.received, "out", s.out.sent, "why", reason(err))
}

// tally adds what was done since the last time to the server's totals.
func (s *session) tally() {
	t, now := &s.srv.total, s.tallied
	now.requests, now.received, now.sent = s.requests, s.received, s.out.sent
	t.requests.Add(now.requests - s.tallied.requests)
	t.received.Add(now.received - s.tallied.received)
	t.sent.Add(now.sent - s.tallied.sent)
	s.tallied = now
}

// reason says why a connection ended; a client that just leaves is no error.
func reason(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return "the client left"
	}
	return err.Error()
}

// guarded turns a panic into an error of this connection alone.
func (s *session) guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("a fault of the server ended a connection", "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return f()
}

// serve authenticates the client and answers its requests until one side ends it.
func (s *session) serve() error {
	if err := s.authenticate(); err != nil {
		return err
	}
	err := s.answerAll()
	if e := s.out.flush(); err == nil {
		err = e
	}
	return err
}

// answerAll answers requests until the connection is to end.
func (s *session) answerAll() error {
	for !s.ending {
		s.phase = betweenRequests
		line, err := s.in.ReadLine()
		switch {
		case errors.Is(err, wire.ErrLineTooLong):
			s.requests++
			err = s.answerError(nil, &wire.Error{Op: "request", Code: wire.TooBig, Err: err})
		case err != nil:
			return err
		case len(line) == 1 && line[0] == 0x04:
			return errClientBye
		case len(line) > 0:
			err = s.request(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) authenticate() error {
	s.conn.SetDeadline(time.Now().Add(s.srv.conf.AuthTimeout))
	ctx, cancel := context.WithTimeout(s.srv.ctx, s.srv.conf.AuthTimeout)
	defer cancel()
	stream := &auth.Stream{Reader: s.in, W: s.conn}
	subject, err := auth.Accept(ctx, stream, s.conn.RemoteAddr(), s.srv.verifiers)
	if err != nil {
		return err
	}
	s.conn.SetDeadline(time.Time{})
	s.subject, s.who = subject, subject.String()
	if s.byTicket() {
		_ = s.checkTicket() // finds the owner; each request checks again
		s.log = s.log.With("ticket", subject.Name)
	}
	s.log = s.log.With("subject", s.who)
	return nil
}

// request answers one request. An error ends the connection.
func (s *session) request(line []byte) error {
	s.phase = inRequest
	s.requests++
	s.replied, s.body = false, 0
	req, err := wire.ParseRequest(line)
	if err != nil {
		return s.unparsed(line, err)
	}
	if r, ok := req.(wire.WithData); ok {
		s.body = r.DataLength()
	}
	if s.looking = keepsNear(req); !s.looking {
		s.dropNear()
	}
	err = s.checkTicket()
	if err == nil {
		err = commands[req.Command()](s, req)
	}
	if err != nil {
		if s.replied {
			return fmt.Errorf("%s, reply cut short: %w", req.Command(), err)
		}
		if s.out.err != nil {
			return s.out.err
		}
		return s.answerError(req, err)
	}
	if !s.replied {
		s.reply(0)
	}
	return s.skipBody()
}

// unparsed answers a line that is no request.
func (s *session) unparsed(line []byte, err error) error {
	s.body = unknownBody(line)
	answered := s.answerError(nil, err)
	var lost *wire.LostStepError
	if errors.As(err, &lost) {
		return lost
	}
	return answered
}

// answerError is the one place that tells a client of an error: it takes what is left
// of the request's data off the stream and writes the error's code.
func (s *session) answerError(req wire.Request, err error) error {
	if err := s.skipBody(); err != nil {
		return err
	}
	code := wire.CodeFor(err)
	s.logError(req, code, err)
	s.reply(int64(code))
	return s.out.err
}

// logError logs a refused request, and an error that has no code of its own.
func (s *session) logError(req wire.Request, code wire.Code, err error) {
	if code != wire.NotAuthorized && code != wire.NotAuthenticated && code != wire.Unknown {
		return
	}
	text := "?"
	if req != nil {
		line, _ := wire.AppendRequest(nil, req)
		text = string(line[:max(0, len(line)-1)])
	}
	if code == wire.Unknown {
		s.log.Error("request failed", "request", text, "err", err)
		return
	}
	s.refused++
	s.log.Warn("request refused", "request", text, "err", err)
}
