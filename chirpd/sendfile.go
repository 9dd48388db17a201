package chirpd

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"

	"skeletonkey/chirpd/confine"
)

// errNoSendfile says that the file or the socket does not do sendfile; nothing has
// been sent.
var errNoSendfile = errors.New("no sendfile here")

// sendfileStep is the most that one system call is asked to send, in bytes, so that
// the limit for a stalled transfer is renewed while a large file goes out.
const sendfileStep = 4 << 20

// sendfile sends what was collected and then, in the same packets, bytes of the file
// until n are sent or the file ends.
func (o *output) sendfile(raw syscall.RawConn, f *confine.File, offset, n int64) (sent int64, err error) {
	if err := o.flushMore(raw); err != nil {
		return 0, err
	}
	in := int(f.Fd())
	for sent < n && o.err == nil {
		var k int
		step := int(min(n-sent, sendfileStep))
		err := o.whenReady(raw, func(fd int) (err error) {
			k, err = unix.Sendfile(fd, in, &offset, step)
			return err
		})
		if sent == 0 && isAny(err, unix.EINVAL, unix.ENOSYS, unix.EOPNOTSUPP) {
			return 0, errNoSendfile
		}
		if err != nil {
			o.err = err
		}
		if k <= 0 {
			break
		}
		sent += int64(k)
		o.sent += int64(k)
	}
	return sent, o.err
}

// flushMore is flush for data that more follows at once.
func (o *output) flushMore(raw syscall.RawConn) error {
	o.flushes++
	for len(o.buf) > 0 && o.err == nil {
		var k int
		o.err = o.whenReady(raw, func(fd int) (err error) {
			k, err = unix.SendmsgN(fd, o.buf, nil, nil, unix.MSG_MORE|unix.MSG_NOSIGNAL)
			return err
		})
		if o.err == nil {
			o.sent += int64(k)
			o.buf = o.buf[k:]
		}
	}
	o.release()
	return o.err
}

// whenReady runs a system call on the socket, and again whenever the socket takes
// more, until it is done or the limit for sending has passed.
func (o *output) whenReady(raw syscall.RawConn, call func(fd int) error) error {
	o.arm()
	if o.err != nil {
		return o.err
	}
	var failed error
	err := raw.Write(func(fd uintptr) bool {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = call(int(fd))
		}
		return failed != unix.EAGAIN
	})
	if err != nil {
		return err
	}
	return failed
}

func isAny(err error, list ...syscall.Errno) bool {
	for _, e := range list {
		if err == e {
			return true
		}
	}
	return false
}
