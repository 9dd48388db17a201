package private

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// raw is a string of any bytes, which JSON text cannot carry as it is.
type raw string

// MarshalJSON encodes the bytes in base64.
func (r raw) MarshalJSON() ([]byte, error) { return json.Marshal([]byte(r)) }

// UnmarshalJSON decodes what MarshalJSON made.
func (r *raw) UnmarshalJSON(text []byte) error {
	var b []byte
	err := json.Unmarshal(text, &b)
	*r = raw(b)
	return err
}

// raws and strs convert lists.
func raws(list []string) []raw {
	out := make([]raw, len(list))
	for i, s := range list {
		out[i] = raw(s)
	}
	return out
}

func strs(list []raw) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// innerSpec is what the inner process is told.
type innerSpec struct {
	Way          string
	None         bool // it has no namespace
	PID          bool // it is PID 1 of a namespace
	Probe        bool // make the namespaces, try FUSE, and end
	Mounts       []mountSpec
	App          appSpec
	CloseTimeout time.Duration
	LogLevel     slog.Level
}

// mountSpec is a Mount.
type mountSpec struct {
	Where    raw
	ReadOnly bool
	Config   json.RawMessage
}

// appSpec is what the launcher is told.
type appSpec struct {
	Argv []raw
	Path raw
	Env  []raw
	Dir  raw
	// Confine: no capability may remain but those in Caps (a bit each).
	Confine bool
	Caps    uint64
}

// inner returns what an inner process of this way is told.
func (p *Plan) inner(w way, probe bool, level slog.Level) innerSpec {
	s := innerSpec{
		Way: w.String(), None: w.none, PID: w.pid, Probe: probe,
		App: appSpec{
			Argv: raws(p.Argv), Path: raw(p.Path), Env: raws(p.Env), Dir: raw(p.Dir),
			Confine: w.user, Caps: callersCaps(),
		},
		CloseTimeout: p.CloseTimeout,
		LogLevel:     level,
	}
	for _, m := range p.Mounts {
		s.Mounts = append(s.Mounts, mountSpec{raw(m.Where), m.ReadOnly, m.Config})
	}
	return s
}

// pack writes v to a file in memory that has no name, for a child to inherit.
func pack(v any) (*os.File, error) {
	fd, err := unix.MemfdCreate("private", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memfd")
	if err := json.NewEncoder(f).Encode(v); err != nil {
		f.Close()
		return nil, fmt.Errorf("write what the child is to do: %w", err)
	}
	return f, nil
}

// unpack reads what pack wrote, and closes the descriptor. The position is set
// here, as the descriptor shares it with the parent's.
func unpack(fd int, v any) error {
	f := os.NewFile(uintptr(fd), "memfd")
	defer f.Close()
	if _, err := f.Seek(0, 0); err != nil {
		return fmt.Errorf("read what is to be done: %w", err)
	}
	if err := json.NewDecoder(f).Decode(v); err != nil {
		return fmt.Errorf("read what is to be done: %w", err)
	}
	return nil
}
