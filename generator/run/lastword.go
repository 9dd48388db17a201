package run

import (
	"context"
	"log/slog"
	"strings"
)

// lastWord keeps back a record with an error until it is known whether it was the last
// one: then what is returned says the same. It is for one goroutine.
type lastWord struct {
	slog.Handler
	held *slog.Record
	text string // of its error
}

// Handle passes on what was kept back, and then the record, or keeps it back.
func (l *lastWord) Handle(ctx context.Context, rec slog.Record) error {
	l.say(ctx, nil)
	rec.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			kept := rec.Clone()
			l.held, l.text = &kept, err.Error()
		}
		return l.held == nil
	})
	if l.held != nil {
		return nil
	}
	return l.Handler.Handle(ctx, rec)
}

// say passes on what was kept back, unless err says it.
func (l *lastWord) say(ctx context.Context, err error) {
	if l.held != nil && (err == nil || !strings.Contains(err.Error(), l.text)) {
		_ = l.Handler.Handle(ctx, *l.held) // a log that fails must not fail the job
	}
	l.held = nil
}
