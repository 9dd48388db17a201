package chirptest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd/auth"
	"skeletonkey/chirpd/wire"
)

// Play runs a conversation with a server: what a client says, and what it must be
// answered, byte for byte. A file has a line for each step:
//
//	# comment; empty lines are skipped too
//	C: stat /a        the client sends this line
//	C+ "bytes\x00"    the client sends these bytes (a Go string), no LF
//	S: 0              the server answers this line; a word * stands for any word,
//	                  and ** at the end for all that follows
//	S+ "bytes"        the server answers these bytes
//	U: a              as S:, but neighbouring U lines may come in any order
//	END               the server closes the connection, within ten seconds
//	NEW               goes on with a new connection
//
// {name} is replaced by vars["name"]. Each connection has been authenticated by unix.
// Lines of the client that follow each other are sent together. A failure names file
// and line, and ends the conversation.
func Play(t *testing.T, addr, file string, vars map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p := &player{addr: addr}
	defer p.close()
	if err := p.connect(); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for i, line := range strings.Split(string(text), "\n") {
		for name, value := range vars {
			line = strings.ReplaceAll(line, "{"+name+"}", value)
		}
		if err := p.step(line); err != nil {
			t.Fatalf("%s:%d: %s: %v", file, i+1, line, err)
		}
	}
	if err := p.settle(); err != nil {
		t.Fatalf("%s: at the end: %v", file, err)
	}
}

type player struct {
	addr string
	nc   net.Conn
	rd   *wire.Reader
	out  bytes.Buffer // said and not sent
	any  []string     // U lines not yet read
}

func (p *player) close() {
	if p.nc != nil {
		_ = p.nc.Close()
	}
}

func (p *player) connect() (err error) {
	p.close()
	if p.nc, err = net.Dial("tcp", p.addr); err != nil {
		return err
	}
	if err := p.nc.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	p.rd = wire.NewReader(p.nc, 4096)
	s := &auth.Stream{Reader: p.rd, W: p.nc}
	_, err = auth.Authenticate(context.Background(), s, p.addr, []auth.Method{auth.Unix("")})
	return err
}

func (p *player) step(line string) error {
	what, arg, _ := strings.Cut(line, " ")
	if what != "U:" {
		if err := p.settle(); err != nil {
			return err
		}
	}
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
		return nil
	case what == "C:":
		p.out.WriteString(arg + "\n")
		return nil
	case what == "C+":
		b, err := strconv.Unquote(arg)
		p.out.WriteString(b)
		return err
	}
	if _, err := p.out.WriteTo(p.nc); err != nil {
		return err
	}
	switch what {
	case "S:":
		return p.expectLine(arg)
	case "S+":
		return p.expectBytes(arg)
	case "U:":
		p.any = append(p.any, arg)
		return nil
	case "END":
		if b, err := io.ReadAll(p.rd); len(b) > 0 {
			return fmt.Errorf("the server went on with %.200q (%v)", b, err)
		}
		return nil
	case "NEW":
		return p.connect()
	}
	return fmt.Errorf("%q is no step of a conversation", what)
}

func (p *player) expectLine(want string) error {
	got, err := p.rd.ReadLine()
	if err != nil {
		return err
	}
	if !matches(string(got), want) {
		return fmt.Errorf("the server said %q", got)
	}
	return nil
}

func (p *player) expectBytes(quoted string) error {
	want, err := strconv.Unquote(quoted)
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p.rd, got); err != nil {
		return fmt.Errorf("the server said %q and then %v", got[:n], err)
	}
	if string(got) != want {
		return fmt.Errorf("the server said %q", got)
	}
	return nil
}

// settle reads as many lines as there are U lines, and finds one for each.
func (p *player) settle() error {
	want := p.any
	p.any = nil
	for range len(want) {
		line, err := p.rd.ReadLine()
		if err != nil {
			return fmt.Errorf("with %q to come: %v", want, err)
		}
		found := false
		for i := range want {
			if found = matches(string(line), want[i]); found {
				want = append(want[:i], want[i+1:]...)
				break
			}
		}
		if !found {
			return fmt.Errorf("the server said %q, which is none of %q", line, want)
		}
	}
	return nil
}

// matches compares a line with a pattern, word by word where it holds a *.
func matches(line, pattern string) bool {
	if !strings.Contains(pattern, "*") {
		return line == pattern
	}
	words, wanted := strings.Fields(line), strings.Fields(pattern)
	for i, w := range wanted {
		if w == "**" {
			return true
		}
		if i >= len(words) || w != "*" && w != words[i] {
			return false
		}
	}
	return len(words) == len(wanted)
}
