package cvmfs

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// relay passes connections on to target until the test ends; every byte comes delay
// later, in both directions.
func relay(t testing.TB, target string, delay time.Duration) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			work.Go(func() { late(far, near, delay) })
			work.Go(func() { late(near, far, delay) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	return l.Addr().String()
}

// late copies from src to dst; each piece is written delay after it came.
func late(dst, src net.Conn, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer dst.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := dst.Write(p.data); err != nil {
				src.Close()
			}
		}
	}()
	for {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if n > 0 {
			pieces <- piece{buf[:n], time.Now().Add(delay)}
		}
		if err != nil {
			if err != io.EOF {
				src.Close()
			}
			break
		}
	}
	close(pieces)
	<-done
}
