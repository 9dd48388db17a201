package private

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxMessage bounds a message between outer and inner, in bytes.
const maxMessage = 64 << 10

// What a message between outer and inner is; its first byte.
const (
	msgSignal = 'S' // to the inner: one byte, the signal's number
	msgLog    = 'L' // to the outer: a record as linkHandler writes it
	msgReport = 'R' // to the outer: a report in JSON, the last message
)

// report is the inner's last word.
type report struct {
	Started  bool
	ExitCode int
	Signal   syscall.Signal
	Failures []*failure
}

// link is one end of a pair of sockets that keep message boundaries. To the
// inner its end of file means that the outer is gone.
type link struct {
	f    *os.File
	send sync.Mutex // one message at a time; guards the write deadline
}

// newLink returns our end and the file to be inherited.
func newLink() (*link, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socketpair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "link")
	ours, err := openLink(fds[0])
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// openLink takes over a descriptor.
func openLink(fd int) (*link, error) {
	unix.CloseOnExec(fd)
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("link to the other process: %w", err)
	}
	return &link{f: os.NewFile(uintptr(fd), "link")}, nil
}

// put sends one message, waiting at most for limit.
func (l *link) put(kind byte, body []byte, limit time.Duration) error {
	if len(body) >= maxMessage {
		return syscall.EMSGSIZE
	}
	l.send.Lock()
	defer l.send.Unlock()
	if err := l.f.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := l.f.Write(append([]byte{kind}, body...))
	return err
}

// get waits for a message, which it reads into buf; io.EOF when the other side
// has closed.
func (l *link) get(buf []byte) (kind byte, body []byte, err error) {
	for {
		n, err := l.f.Read(buf)
		switch {
		case errors.Is(err, syscall.ECONNRESET):
			continue // the other side ended with messages of ours unread; its own still come
		case err != nil:
			return 0, nil, err
		}
		return buf[0], buf[1:n], nil
	}
}

// Write makes a link the output of a linkHandler. What cannot be sent
// within a second (the outer is stopped) or is too long is lost.
func (l *link) Write(line []byte) (int, error) {
	if err := l.put(msgLog, line, time.Second); err != nil {
		return 0, err
	}
	return len(line), nil
}

// linkHandler writes records for relog, whose values are texts where JSON would take
// them apart: the outer does not know their types.
func linkHandler(w io.Writer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		builtIn := len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.TimeKey || a.Key == slog.MessageKey)
		switch kind := a.Value.Kind(); {
		case builtIn:
		case kind == slog.KindDuration:
			a.Value = slog.StringValue(a.Value.String())
		case kind == slog.KindAny:
			a.Value = slog.StringValue(textOf(a.Value.Any()))
		}
		return a
	}})
}

// textOf is how a slog.TextHandler writes a value.
func textOf(v any) string {
	if m, ok := v.(encoding.TextMarshaler); ok {
		if text, err := m.MarshalText(); err == nil {
			return string(text)
		}
	}
	return fmt.Sprintf("%+v", v)
}

// relog passes a record of the inner's to the outer's log.
func relog(ctx context.Context, log *slog.Logger, line []byte) {
	var fields map[string]any
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if dec.Decode(&fields) != nil {
		return
	}
	var level slog.Level
	text, _ := fields[slog.LevelKey].(string)
	if level.UnmarshalText([]byte(text)) != nil || !log.Enabled(ctx, level) {
		return
	}
	msg, _ := fields[slog.MessageKey].(string)
	stamp, _ := fields[slog.TimeKey].(string)
	when, _ := time.Parse(time.RFC3339Nano, stamp)
	rec := slog.NewRecord(when, level, msg, 0)
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if k != slog.LevelKey && k != slog.MessageKey && k != slog.TimeKey {
			rec.AddAttrs(slog.Any(k, fields[k]))
		}
	}
	// A log that fails must not fail the command.
	_ = log.Handler().Handle(ctx, rec)
}

// lowestLevel is the least level that log takes.
func lowestLevel(ctx context.Context, log *slog.Logger) slog.Level {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
		if log.Enabled(ctx, l) {
			return l
		}
	}
	return slog.LevelError
}
