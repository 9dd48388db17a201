package chirpd

import (
	"net"
	"strconv"
	"sync"

	"skeletonkey/chirpd/wire"
)

// copyMax is the most data that goes through the output buffer, in bytes; more leaves
// the file by sendfile where there is a socket.
const copyMax = 32 << 10

// outputBuffer holds a reply of copyMax bytes with its header and some replies before.
const outputBuffer = copyMax + 4<<10

// maxHeader is the longest number line.
const maxHeader = 21

var outputBuffers = sync.Pool{New: func() any { return new([outputBuffer]byte) }}

// output collects replies. It has a buffer only between the first reply and the next
// flush, so that an idle client holds none. The first error sticks.
type output struct {
	conn  net.Conn
	limit deadline
	whole *[outputBuffer]byte // what buf lies in; nil with buf
	buf   []byte
	err   error
	sent  int64 // bytes
	// flushes counts how often something was sent.
	flushes int
}

// room makes sure that n more bytes, at most outputBuffer, fit into buf.
func (o *output) room(n int) {
	if o.whole != nil && cap(o.buf)-len(o.buf) < n {
		o.flush()
	}
	if o.whole == nil {
		o.whole = outputBuffers.Get().(*[outputBuffer]byte)
		o.buf = o.whole[:0]
	}
}

// write appends p, however long.
func (o *output) write(p []byte) {
	for len(p) > 0 {
		o.room(1)
		n := copy(o.buf[len(o.buf):cap(o.buf)], p)
		o.buf = o.buf[:len(o.buf)+n]
		p = p[n:]
	}
}

func (o *output) number(n int64) {
	o.room(maxHeader)
	o.buf = wire.AppendInt(o.buf, n)
}

// data appends a header with the count of bytes that fill gives, and the bytes. fill
// gets room for n bytes, at most copyMax.
func (o *output) data(n int, fill func([]byte) (int, error)) error {
	o.room(maxHeader + n)
	mark := len(o.buf)
	header := digits(n) + 1
	got, err := fill(o.buf[mark+header : mark+header+n])
	if err != nil {
		return err
	}
	body := o.buf[mark+header : mark+header+got]
	o.buf = wire.AppendInt(o.buf, int64(got))
	if len(o.buf) != mark+header { // fewer digits than foreseen
		o.buf = append(o.buf, body...)
		return nil
	}
	o.buf = o.buf[:mark+header+got]
	return nil
}

func digits(n int) int {
	var b [maxHeader]byte
	return len(strconv.AppendInt(b[:0], int64(n), 10))
}

// flush sends what was collected.
func (o *output) flush() error {
	if len(o.buf) > 0 {
		o.flushes++
		if o.arm(); o.err == nil {
			var n int
			n, o.err = o.conn.Write(o.buf)
			o.sent += int64(n)
		}
	}
	o.release()
	return o.err
}

// arm renews the limit for sending.
func (o *output) arm() {
	if t, due := o.limit.due(); due && o.err == nil {
		o.err = o.conn.SetWriteDeadline(t)
	}
}

// release gives the buffer back, sent or not.
func (o *output) release() {
	if o.whole != nil {
		outputBuffers.Put(o.whole)
		o.whole, o.buf = nil, nil
	}
}
