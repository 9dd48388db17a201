package client_test

import (
	"strings"
	"testing"

	"skeletonkey/chirpd/chirptest"
	"skeletonkey/chirpd/client"
	"skeletonkey/chirpd/wire"
)

func benchBoth(b *testing.B, bench func(b *testing.B, c *client.Client)) {
	b.Run("ours", func(b *testing.B) { bench(b, dial(b, chirptest.Server(b).Addr, client.Options{})) })
	b.Run("real", func(b *testing.B) { bench(b, dial(b, chirptest.RealServer(b).Addr, client.Options{})) })
}

// BenchmarkPread reads 1 MiB at a time from the page cache, one at a time and with
// several under way.
func BenchmarkPread(b *testing.B) {
	const size = 1 << 20
	bench := func(window int) func(b *testing.B, c *client.Client) {
		return func(b *testing.B, c *client.Client) {
			ctx := b.Context()
			ok(b, c.Putfile(ctx, "/f", 0o644, 64*size, strings.NewReader(strings.Repeat("x", 64*size))))
			f, err := c.Open(ctx, "/f", wire.OpenRead, 0)
			ok(b, err)
			calls := make([]*client.Call, window)
			bufs := make([][]byte, window)
			for i := range bufs {
				bufs[i] = make([]byte, size)
			}
			b.SetBytes(size)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				slot := i % window
				if calls[slot] != nil {
					if n, err := calls[slot].Wait(ctx); err != nil || n != size {
						b.Fatalf("read %d bytes: %v", n, err)
					}
				}
				calls[slot] = f.StartPread(bufs[slot], int64(i%64)*size)
			}
			for _, k := range calls {
				if k != nil {
					_, err := k.Wait(ctx)
					ok(b, err)
				}
			}
		}
	}
	b.Run("window=1", func(b *testing.B) { benchBoth(b, bench(1)) })
	b.Run("window=4", func(b *testing.B) { benchBoth(b, bench(4)) })
}

// BenchmarkPwrite writes 1 MiB at a time, several under way.
func BenchmarkPwrite(b *testing.B) {
	benchBoth(b, func(b *testing.B, c *client.Client) {
		const size, window = 1 << 20, 4
		ctx := b.Context()
		f, err := c.Open(ctx, "/f", create, 0o644)
		ok(b, err)
		var calls [window]*client.Call
		buf := make([]byte, size)
		b.SetBytes(size)
		b.ResetTimer()
		for i := range b.N {
			if k := calls[i%window]; k != nil {
				_, err := k.Wait(ctx)
				ok(b, err)
			}
			calls[i%window] = f.StartPwrite(buf, int64(i%64)*size)
		}
		for _, k := range calls {
			if k != nil {
				_, err := k.Wait(ctx)
				ok(b, err)
			}
		}
	})
}

// BenchmarkStat asks one at a time, and many at once.
func BenchmarkStat(b *testing.B) {
	benchBoth(b, func(b *testing.B, c *client.Client) {
		b.ReportAllocs()
		for range b.N {
			_, err := c.Stat(b.Context(), "/")
			ok(b, err)
		}
	})
	b.Run("pipelined", func(b *testing.B) {
		benchBoth(b, func(b *testing.B, c *client.Client) {
			const window = 64
			var calls [window]*client.Call
			var sts [window]wire.Stat
			for i := range b.N {
				if k := calls[i%window]; k != nil {
					_, err := k.Wait(b.Context())
					ok(b, err)
				}
				calls[i%window] = c.StartStat("/", &sts[i%window])
			}
			for _, k := range calls {
				if k != nil {
					_, err := k.Wait(b.Context())
					ok(b, err)
				}
			}
		})
	})
}

// BenchmarkGetfile copies a whole file of 64 MiB.
func BenchmarkGetfile(b *testing.B) {
	benchBoth(b, func(b *testing.B, c *client.Client) {
		const size = 64 << 20
		ok(b, c.Putfile(b.Context(), "/f", 0o644, size, strings.NewReader(strings.Repeat("x", size))))
		b.SetBytes(size)
		b.ResetTimer()
		for range b.N {
			_, err := c.Getfile(b.Context(), "/f", writerFunc(func(p []byte) (int, error) { return len(p), nil }))
			ok(b, err)
		}
	})
}
