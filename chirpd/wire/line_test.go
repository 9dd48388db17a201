package wire

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		name, in string
		lines    []string
		end      error
	}{
		{"lines", "a\nb c\r\n\nd\n", []string{"a", "b c", "", "d"}, io.EOF},
		{"torn", "a\nhalf", []string{"a"}, io.ErrUnexpectedEOF},
		{"torn long", strings.Repeat("y", 5000), nil, io.ErrUnexpectedEOF},
		{"longest", long + "\nnext\n", []string{long, "next"}, io.EOF},
		{"empty", "", nil, io.EOF},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			lr := NewReader(r, 64)
			for _, want := range c.lines {
				if got, err := lr.ReadLine(); err != nil || string(got) != want {
					t.Fatalf("%s: line %.20q, %v; want %.20q", c.name, got, err, want)
				}
			}
			if got, err := lr.ReadLine(); !errors.Is(err, c.end) {
				t.Fatalf("%s: at the end %.20q, %v; want %v", c.name, got, err, c.end)
			}
		}
	}
}

func TestOverlongLineIsDrained(t *testing.T) {
	for _, n := range []int{MaxLine + 1, MaxLine + 2, 3 * MaxLine} {
		r := NewReader(strings.NewReader(strings.Repeat("x", n)+"\nnext\n"), 4096)
		if _, err := r.ReadLine(); !errors.Is(err, ErrLineTooLong) {
			t.Fatalf("%d bytes: %v", n, err)
		}
		if got, err := r.ReadLine(); err != nil || string(got) != "next" {
			t.Fatalf("after %d bytes: %q, %v", n, got, err)
		}
	}
}

func TestDataAfterLine(t *testing.T) {
	r := NewReader(strings.NewReader("pwrite 1 4 0\n\n\r\n4stat /\n"), 16)
	mustLine(t, r, "pwrite 1 4 0")
	data := make([]byte, 4)
	if _, err := io.ReadFull(r, data); err != nil || string(data) != "\n\r\n4" {
		t.Fatalf("data %q, %v", data, err)
	}
	mustLine(t, r, "stat /")
}

func mustLine(t *testing.T, r *Reader, want string) {
	t.Helper()
	if got, err := r.ReadLine(); err != nil || string(got) != want {
		t.Fatalf("line %q, %v; want %q", got, err, want)
	}
}
