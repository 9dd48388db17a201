package installer

import (
	"bytes"
	"fmt"
	"io"
	"runtime"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"
	"github.com/ulikunitz/xz"
)

const (
	frameSize  = 8 << 20 // what is compressed independently of the rest
	gzipBlock  = 1 << 20
	maxWorkers = 8 // frames, or blocks, compressed at a time; each needs up to 100 MiB for xz
)

// workers is how many processors compress. What comes out does not depend on it.
func workers() int { return max(1, min(runtime.GOMAXPROCS(0), maxWorkers)) }

// newCompressor returns what compresses to out by a file name's extension. Close
// writes the end and waits for its goroutines, also after an error.
func newCompressor(out io.Writer, extension string) (io.WriteCloser, error) {
	switch extension {
	case ".tar":
		return nopCloser{out}, nil
	case ".tar.gz", ".tgz":
		w := pgzip.NewWriter(out)
		return w, w.SetConcurrency(gzipBlock, workers())
	case ".tar.zst", ".tzst":
		enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(workers()),
			zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithWindowSize(frameSize))
		if err != nil {
			return nil, err
		}
		return newFrameWriter(out, func(p []byte) ([]byte, error) { return enc.EncodeAll(p, nil), nil }), nil
	case ".tar.xz", ".txz":
		return newFrameWriter(out, compressXZ), nil
	}
	return nil, fmt.Errorf("%q is none of .tar, .tar.gz, .tar.xz, .tar.zst", extension)
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func compressXZ(p []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: frameSize, CheckSum: xz.CRC64}.NewWriter(&b)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(p); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// frameWriter compresses pieces of frameSize independently, several at a time,
// and writes them one behind the other: zstd frames and xz streams may follow
// each other in a file. One goroutine for each piece under way ends by itself;
// the one that writes is ended by Close.
type frameWriter struct {
	compress func([]byte) ([]byte, error)
	buf      []byte
	begun    bool             // a piece was sent
	queue    chan chan framed // in order; its room bounds what is under way
	free     chan []byte      // buffers on their way back
	ended    chan error       // the writing goroutine's result
	failed   chan struct{}    // closed by it at the first error
}

type framed struct {
	data []byte
	err  error
}

func newFrameWriter(out io.Writer, compress func([]byte) ([]byte, error)) *frameWriter {
	w := &frameWriter{
		compress: compress,
		queue:    make(chan chan framed, workers()-1),
		free:     make(chan []byte, workers()+2),
		ended:    make(chan error, 1),
		failed:   make(chan struct{}),
	}
	go func() { w.ended <- w.write(out) }()
	return w
}

// write is the writing goroutine. After an error it takes what comes, unwritten.
func (w *frameWriter) write(out io.Writer) (first error) {
	for piece := range w.queue {
		f := <-piece
		if first != nil {
			continue
		}
		if first = f.err; first == nil {
			_, first = out.Write(f.data)
		}
		if first != nil {
			close(w.failed)
		}
	}
	return first
}

// Write takes p; an error of the other side comes with a later call or Close.
func (w *frameWriter) Write(p []byte) (n int, err error) {
	select {
	case <-w.failed:
		return 0, io.ErrClosedPipe // Close has the cause
	default:
	}
	for len(p) > 0 {
		if w.buf == nil {
			w.buf = w.buffer()
		}
		k := copy(w.buf[len(w.buf):frameSize], p)
		w.buf, p, n = w.buf[:len(w.buf)+k], p[k:], n+k
		if len(w.buf) == frameSize {
			w.send()
		}
	}
	return n, nil
}

func (w *frameWriter) buffer() []byte {
	select {
	case b := <-w.free:
		return b[:0]
	default:
		return make([]byte, 0, frameSize)
	}
}

// send starts the compression of the piece in buf.
func (w *frameWriter) send() {
	piece, done := w.buf, make(chan framed, 1)
	w.buf, w.begun = nil, true
	go func() {
		data, err := w.compress(piece)
		select {
		case w.free <- piece:
		default:
		}
		done <- framed{data, err}
	}()
	w.queue <- done
}

// Close compresses the rest and waits until all is written.
func (w *frameWriter) Close() error {
	if len(w.buf) > 0 || !w.begun {
		w.send()
	}
	close(w.queue)
	return <-w.ended
}
