package main

import (
	"io"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on a terminal that counts bytes; elsewhere it is nothing. It is
// safe for concurrent use.
type progress struct {
	bars *mpb.Progress // nil where nobody looks
	bar  *mpb.Bar

	mu    sync.Mutex
	total int64 // bytes that are due; guarded by mu
}

func (a *app) progress() *progress {
	if a.quiet || !terminal(a.err) {
		return &progress{}
	}
	bars := mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(60))
	bar := bars.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.CountersKibiByte("% .1f / % .1f")),
		mpb.AppendDecorators(decor.AverageSpeed(decor.SizeB1024(0), "% .1f"), decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8})),
	)
	return &progress{bars: bars, bar: bar}
}

// add tells of n more bytes that are due.
func (p *progress) add(n int64) {
	if p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total += n
	p.bar.SetTotal(p.total, false)
}

// end takes the bar away, whether all was done or not.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
		p.bars.Wait()
	}
}

// writer counts what is written to w.
func (p *progress) writer(w io.Writer) io.Writer {
	if p.bar == nil {
		return w
	}
	return struct{ io.Writer }{io.MultiWriter(w, counting{p.bar})}
}

// reader counts what is read from r.
func (p *progress) reader(r io.Reader) io.Reader {
	if p.bar == nil {
		return r
	}
	return io.TeeReader(r, counting{p.bar})
}

type counting struct{ bar *mpb.Bar }

func (c counting) Write(b []byte) (int, error) {
	c.bar.IncrBy(len(b))
	return len(b), nil
}
