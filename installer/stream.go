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
// and ended by close, reads and decompresses a bounded distance ahead. Where there
// is nothing to decompress, the consumer reads by itself, which is faster.
type stream struct {
	ctx    context.Context
	format string
	chunks chunker
	ahead  bool          // there is a goroutine, and chunks are its own
	full   chan chunk    // closed by the goroutine after its last chunk
	free   chan []byte   // buffers on their way back; holds all of them
	stop   chan struct{} // closed by close

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
// the decompressor's. n may be loaded by anybody.
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
		ctx: ctx, format: f.name, ahead: f.name != "tar",
		chunks: chunker{src: src, members: members{in: in, format: f}, guard: newBombGuard(lim)},
	}
	if !s.ahead {
		s.buf = make([]byte, chunkSize)
		return s, nil
	}
	s.full = make(chan chunk, chunkCount)
	s.free = make(chan []byte, chunkCount)
	s.stop = make(chan struct{})
	for range chunkCount {
		s.free <- nil
	}
	go s.produce()
	return s, nil
}

// close ends the goroutine and waits for it.
func (s *stream) close() {
	if !s.ahead {
		s.chunks.members.close()
		return
	}
	close(s.stop)
	for range s.full {
	}
}

// compressed is the number of bytes of the archive that were read so far.
func (s *stream) compressed() int64 { return s.chunks.src.n.Load() }

// produce is the goroutine: it fills free buffers until an error, the end or
// close.
func (s *stream) produce() {
	defer close(s.full)
	defer s.chunks.members.close()
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
		c := s.chunks.next(buf)
		s.full <- c // never blocks: room for every buffer
		if c.err != nil {
			return
		}
	}
}

// chunker reads a whole archive in chunks.
type chunker struct {
	src     *source
	members members
	guard   bombGuard
}

// next fills buf.
func (c *chunker) next(buf []byte) chunk {
	n, err := fill(&c.members, buf)
	if c.src.err != nil {
		err = c.src.err
	}
	if bomb := c.guard.add(n, c.src.n.Load()); bomb != nil {
		err = bomb
	}
	return chunk{buf[:n], err}
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
		c := s.nextChunk()
		s.buf, s.rest, s.err = c.data, c.data, c.err
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	s.read += int64(n)
	return n, nil
}

// nextChunk gives the used buffer back and returns the next chunk.
func (s *stream) nextChunk() chunk {
	if err := context.Cause(s.ctx); err != nil {
		return chunk{err: err}
	}
	if !s.ahead {
		return s.chunks.next(s.buf[:cap(s.buf)])
	}
	if s.buf != nil {
		s.free <- s.buf[:cap(s.buf)]
		s.buf = nil
	}
	select {
	case <-s.ctx.Done():
		return chunk{err: context.Cause(s.ctx)}
	case c := <-s.full:
		return c
	}
}

// bombGuard stops a stream that grows out of proportion.
type bombGuard struct {
	lim  Limits
	most int64
	out  int64
}

func newBombGuard(lim Limits) bombGuard { return bombGuard{lim: lim, most: streamLimit(lim)} }

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
