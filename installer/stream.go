package installer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

const (
	chunkSize  = 256 << 10 // what the decompressor hands over at once
	chunkCount = 8         // how far it may be ahead: 2 MiB
	inputSize  = 256 << 10 // one read of the archive
)

// stream is the decompressed archive. A goroutine of its own, begun by newStream
// and ended by close, reads and decompresses a bounded distance ahead.
type stream struct {
	ctx    context.Context
	format string
	full   chan chunk    // closed by the goroutine after its last chunk
	free   chan []byte   // buffers on their way back; holds all of them
	stop   chan struct{} // closed by close
	in     *source

	// The consumer's.
	buf, rest []byte
	err       error // what rest ends with
	read      int64 // bytes handed out
}

type chunk struct {
	data []byte
	err  error // what follows data, io.EOF at a good end
}

// source counts what is read of the archive, and keeps its first error apart from
// the decompressor's. Only the stream's goroutine reads; n is read by both.
type source struct {
	r   io.Reader
	n   atomic.Int64
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n.Add(int64(n))
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// newStream recognises the compression of r and starts to decompress it. The
// caller must close the stream.
func newStream(ctx context.Context, r io.Reader, lim Limits) (*stream, error) {
	src := &source{r: r}
	in := bufio.NewReaderSize(src, inputSize)
	f, err := sniff(in)
	if err != nil {
		if src.err != nil {
			err = src.err
		}
		return nil, err
	}
	s := &stream{
		ctx: ctx, format: f.name, in: src,
		full: make(chan chunk, chunkCount),
		free: make(chan []byte, chunkCount),
		stop: make(chan struct{}),
	}
	for range chunkCount {
		s.free <- nil
	}
	go s.produce(&members{in: in, format: f}, lim)
	return s, nil
}

// close ends the goroutine and waits for it.
func (s *stream) close() {
	close(s.stop)
	for range s.full {
	}
}

// produce is the goroutine: it fills free buffers from m until an error, the end
// or close.
func (s *stream) produce(m *members, lim Limits) {
	defer close(s.full)
	defer m.close()
	guard := bombGuard{lim: lim, most: streamLimit(lim)}
	for {
		var buf []byte
		select {
		case <-s.stop:
			return
		case buf = <-s.free:
		}
		if buf == nil {
			buf = make([]byte, chunkSize)
		}
		n, err := fill(m, buf)
		if s.in.err != nil {
			err = s.in.err
		}
		if bomb := guard.add(n, s.in.n.Load()); bomb != nil {
			err = bomb
		}
		s.full <- chunk{buf[:n], err} // never blocks: room for every buffer
		if err != nil {
			return
		}
	}
}

// fill reads until buf is full or m ends. The decompressors are other people's
// code on a stranger's data: a panic there is a damaged archive, not our end.
func fill(m *members, buf []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
		}
	}()
	for n < len(buf) && err == nil {
		var k int
		k, err = m.Read(buf[n:])
		n += k
	}
	return n, err
}

// Read returns decompressed bytes, or ctx's error.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.buf != nil {
			s.free <- s.buf[:cap(s.buf)]
			s.buf = nil
		}
		select {
		case <-s.ctx.Done():
			s.err = context.Cause(s.ctx)
			return 0, s.err
		case c := <-s.full:
			s.buf, s.rest, s.err = c.data, c.data, c.err
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.read += int64(n)
	return n, nil
}

// bombGuard stops a stream that grows out of proportion.
type bombGuard struct {
	lim  Limits
	most int64
	out  int64
}

func streamLimit(lim Limits) int64 {
	const perEntry = 4 << 10
	if lim.Entries > (1<<62)/perEntry || lim.Bytes > 1<<62 {
		return 1<<63 - 1
	}
	return lim.Bytes + lim.Entries*perEntry
}

// add counts n more bytes out of in that were read so far.
func (g *bombGuard) add(n int, in int64) error {
	g.out += int64(n)
	if g.out > g.most {
		return fmt.Errorf("%w: the decompressed archive is longer than %d bytes", ErrLimit, g.most)
	}
	if g.out > g.lim.RatioFrom && g.out/g.lim.Ratio > in {
		return fmt.Errorf("%w: %d bytes decompress to more than %d, over %d times as much",
			ErrLimit, in, g.out, g.lim.Ratio)
	}
	return nil
}

// inputError gives a decompressor's error its kind.
func inputError(err error) error {
	switch {
	case err == nil, err == io.EOF:
		return err
	case errors.Is(err, ErrLimit), errors.Is(err, ErrTrailing), errors.Is(err, ErrCorrupt):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return ErrTruncated
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}
