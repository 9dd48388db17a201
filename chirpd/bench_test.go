package chirpd_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"
)

// benchSite is a server with a file of 64 MiB, and a client.
func benchSite(b *testing.B) *peer {
	s := serve(b)
	s.write("d/small", "hello")
	if err := os.WriteFile(s.path("d/large"), bytes.Repeat([]byte("0123456789abcdef"), 4<<20), 0o644); err != nil {
		b.Fatal(err)
	}
	return s.as("owner")
}

func BenchmarkStat(b *testing.B) {
	p := benchSite(b)
	for b.Loop() {
		p.ask("stat /d/small")
		p.line()
	}
}

func BenchmarkStatPipelined(b *testing.B) {
	p := benchSite(b)
	const depth = 300
	batch := bytes.Repeat([]byte("stat /d/small\n"), depth)
	for n := 0; n < b.N; n += depth {
		go p.Write(batch)
		for range 2 * depth {
			p.line()
		}
	}
}

func BenchmarkOpenClose(b *testing.B) {
	p := benchSite(b)
	for b.Loop() {
		fd := p.ask("open /d/small r 0")
		p.line()
		p.ask("close %s", fd)
	}
}

func BenchmarkPread4K(b *testing.B) {
	p := benchSite(b)
	p.ask("open /d/large r 0")
	p.line()
	buf := make([]byte, 4096)
	b.SetBytes(4096)
	for b.Loop() {
		p.ask("pread 0 4096 8192")
		io.ReadFull(p.in, buf)
	}
}

// BenchmarkPreadPipelined keeps four reads on their way.
func BenchmarkPreadPipelined(b *testing.B) {
	for _, size := range []int{64 << 10, 128 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dK", size>>10), func(b *testing.B) {
			p := benchSite(b)
			p.ask("open /d/large r 0")
			p.line()
			buf := make([]byte, size)
			request := fmt.Appendf(nil, "pread 0 %d 0\n", size)
			b.SetBytes(int64(size))
			for range 3 {
				p.Write(request)
			}
			for b.Loop() {
				p.Write(request)
				p.line()
				io.ReadFull(p.in, buf)
			}
		})
	}
}

func BenchmarkPwritePipelined(b *testing.B) {
	p := benchSite(b)
	p.ask("open /d/new wc 420")
	p.line()
	const size = 1 << 20
	request := append([]byte("pwrite 0 1048576 0\n"), make([]byte, size)...)
	b.SetBytes(size)
	b.ResetTimer()
	go func() {
		for range b.N {
			p.Write(request)
		}
	}()
	for range b.N {
		p.line()
	}
}

func BenchmarkGetfile(b *testing.B) {
	p := benchSite(b)
	b.SetBytes(64 << 20)
	for b.Loop() {
		p.ask("getfile /d/large")
		io.CopyN(io.Discard, p.in, 64<<20)
	}
}
