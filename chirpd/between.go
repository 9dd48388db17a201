package chirpd

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/acl"
	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/confine"
	"skeletonkey/chirpd/wire"
)

// This file is what the server asks of other servers for its clients. It speaks to them
// as itself, by Config.PeerMethods.

// peerTimeout is how long another server may take to be connected to, or make no
// progress.
const peerTimeout = 30 * time.Second

func (s *session) peer(host string) *client.Client {
	methods := s.srv.conf.PeerMethods
	if methods == nil {
		methods = []auth.Method{auth.Hostname(), auth.Address()}
	}
	return client.New(host, client.Options{Methods: methods, Timeout: -1, Stall: peerTimeout, Conns: 1, Log: s.log,
		Dial: s.srv.conf.PeerDial})
}

// whoareyou tells as whom another server takes this one.
func (s *session) whoareyou(r *wire.Whoareyou) error {
	if err := s.out.flush(); err != nil {
		return err
	}
	c := s.peer(r.Host)
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.srv.ctx, peerTimeout)
	defer cancel()
	name, err := c.Whoami(ctx)
	if err != nil {
		return err
	}
	return s.replyText([]byte(name[:min(int64(len(name)), r.Length)]))
}

// thirdput sends a file, a link or a whole tree, with its ACLs, to another server, and
// answers how many bytes of files that were.
func (s *session) thirdput(r *wire.Thirdput) error {
	if err := s.out.flush(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(s.srv.ctx)
	defer cancel()
	c := s.peer(r.Host)
	defer c.Close()
	t := sending{s: s, ctx: ctx, to: c}
	if err := t.any(wire.CleanPath(r.Path), wire.CleanPath(r.NewPath), 0); err != nil {
		return err
	}
	s.reply(t.bytes)
	return nil
}

// sending is a thirdput under way.
type sending struct {
	s     *session
	ctx   context.Context
	to    *client.Client
	bytes int64
}

// any sends what lies at from, a link as a link.
func (t *sending) any(from, to string, depth int) error {
	if depth > maxDepth {
		return unix.ENAMETOOLONG
	}
	if err := t.check(); err != nil {
		return err
	}
	var info confine.Info
	target := ""
	err := t.s.object(from, false, 0, func(f *found) (err error) {
		want := acl.Read
		if info = f.info; info.IsDir() {
			want |= acl.List
		}
		if !f.rights.Has(want) {
			return &deniedError{want, f.Path()}
		}
		if info.IsLink() {
			target, err = f.Readlink()
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case info.IsLink():
		return t.to.Symlink(t.ctx, target, to)
	case info.IsDir():
		return t.dir(from, to, &info, depth)
	}
	return t.file(from, to)
}

func (t *sending) file(from, to string) error {
	f, info, err := t.s.readable(from)
	if err != nil {
		return err
	}
	defer f.Close()
	err = t.to.Putfile(t.ctx, to, int64(permissions(int64(info.Mode))), info.Size, watched{t, f})
	if err == nil {
		t.bytes += info.Size
	}
	return err
}

// dir sends a directory; what is there already stays. Its ACL follows when its content
// is there, as it may take away what this server needs.
func (t *sending) dir(from, to string, info *confine.Info, depth int) error {
	var names []string
	var list acl.ACL
	err := t.s.directory(from, acl.Read|acl.List, func(_, inside *place) (err error) {
		if list, _, err = inside.ex.acls.in(inside.At); err != nil {
			return err
		}
		return inside.ReadDir(false, func(e *confine.Entry) error {
			names = append(names, string(e.Name))
			return nil
		})
	})
	if err != nil {
		return err
	}
	err = t.to.Mkdir(t.ctx, to, int64(dirPermissions(int64(info.Mode))))
	if err != nil && !errors.Is(err, wire.AlreadyExists) {
		return err
	}
	for _, name := range names {
		if err := t.any(join(from, name), join(to, name), depth+1); err != nil {
			return err
		}
	}
	return t.rights(to, list)
}

// rights gives a directory there the ACL that it has here. A server that does not let
// this one administer keeps its own, as with the real server.
func (t *sending) rights(to string, list acl.ACL) error {
	err := t.setRights(to, list)
	if errors.Is(err, wire.NotAuthorized) {
		t.s.log.Warn("thirdput: the other server does not let its rights be set", "server", t.to.Server(), "dir", to)
		return nil
	}
	return err
}

// setRights takes this server's own entry away last.
func (t *sending) setRights(to string, list acl.ACL) error {
	there, err := t.to.Getacl(t.ctx, to)
	if err != nil {
		return err
	}
	self, err := t.to.Whoami(t.ctx)
	if err != nil {
		return err
	}
	own := acl.Rights(0)
	for _, e := range list {
		if e.Subject == self {
			own |= e.Rights
		} else if err := t.to.Setacl(t.ctx, to, e.Subject, e.Rights.String()); err != nil {
			return err
		}
	}
	for _, e := range there {
		listed := func(h acl.Entry) bool { return h.Subject == e.Subject }
		if e.Subject != self && !containsEntry(list, listed) {
			if err := t.to.Setacl(t.ctx, to, e.Subject, ""); err != nil {
				return err
			}
		}
	}
	return t.to.Setacl(t.ctx, to, self, own.String())
}

func containsEntry(list acl.ACL, is func(acl.Entry) bool) bool {
	for _, e := range list {
		if is(e) {
			return true
		}
	}
	return false
}

// check ends the work when the client has gone, or the server stops.
func (t *sending) check() error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	return t.s.present()
}

// watched is a file on its way to another server.
type watched struct {
	t *sending
	r io.Reader
}

func (w watched) Read(p []byte) (int, error) {
	if err := w.t.check(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}

// present fails when the client has closed the connection. More requests of its may be
// waiting.
func (s *session) present() error {
	if s.raw == nil {
		return nil
	}
	var n int
	var failed error
	err := s.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, failed = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	switch {
	case err != nil:
		return err
	case failed == nil && n == 0:
		return io.EOF
	case failed != nil && !isAny(failed, syscall.EAGAIN, syscall.EINTR):
		return failed
	}
	return nil
}
