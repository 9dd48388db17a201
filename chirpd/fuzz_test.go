package chirpd_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"skeletonkey/chirpd"
)

// FuzzSession sends a client's bytes to a server that holds files, tickets and a link
// that leads out, and then nothing more. The server must close in time, without a
// panic, say nothing of what lies outside, and leave that alone.
func FuzzSession(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	const secret = "what lies outside"
	s := serve(f, func(c *chirpd.Config) {
		c.PeerDial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") }
	})
	outside := filepath.Join(f.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte(secret), 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		if err := os.WriteFile(s.path("f"), []byte("content"), 0o644); err != nil && !os.IsNotExist(err) {
			_ = os.RemoveAll(s.path("f")) // it made a directory of it, or a link
		}
		_ = os.Symlink(outside, s.path("out"))
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		go func() {
			conn.Write(append([]byte("unix\nowner\n"), said...))
			conn.(*net.TCPConn).CloseWrite()
		}()
		heard, err := io.ReadAll(conn)
		if err, ok := err.(net.Error); ok && err.Timeout() {
			t.Fatal("the server hangs")
		}
		if bytes.Contains(heard, []byte(secret)) {
			t.Error("the client got what lies outside")
		}
		if b, err := os.ReadFile(outside); string(b) != secret {
			t.Errorf("what lies outside is %q (%v)", b, err)
		}
		if text := s.log.String(); strings.Contains(text, "a fault of the server") {
			t.Error(text)
		}
		s.log.reset()
	})
}

// seeds are what clients say in the recorded conversations, and some more.
func seeds(f *testing.F) [][]byte {
	list := [][]byte{
		[]byte("stat /out\ngetfile /out\nopen /out rwct 0\nputfile /out 420 1\nx"),
		[]byte("\x04"), []byte("stat /" + strings.Repeat("x", 70000) + "\nstat /\n"),
		[]byte("putstream /f\nhello"), []byte("getstream /f\n"),
		[]byte("open /f r 0\nsread 0 16777216 1 9223372036854775807 1\npread 0 9223372036854775807 0\n"),
		[]byte("pwrite 0 9223372036854775807 0\nstat /\n"), []byte("setxattr /f user.a 9223372036854775807 0\nx"),
	}
	files, err := filepath.Glob("testdata/*/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var said []byte
		for line := range strings.SplitSeq(string(text), "\n") {
			if rest, ok := strings.CutPrefix(line, "C: "); ok {
				said = append(said, rest+"\n"...)
			}
			if rest, ok := strings.CutPrefix(line, "C+ "); ok {
				if b, err := strconv.Unquote(rest); err == nil {
					said = append(said, b...)
				}
			}
		}
		list = append(list, said)
	}
	return list
}
