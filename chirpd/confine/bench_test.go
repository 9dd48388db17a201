package confine

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func benchRoot(b *testing.B) *Root {
	dir := b.TempDir()
	must(b, os.MkdirAll(dir+"/a/b", 0o755))
	must(b, os.WriteFile(dir+"/a/b/c", []byte("content"), 0o644))
	must(b, os.Mkdir(dir+"/many", 0o755))
	for i := range 10000 {
		must(b, os.WriteFile(fmt.Sprintf("%s/many/entry-%d", dir, i), nil, 0o644))
	}
	root, err := Open(dir, Options{})
	must(b, err)
	b.Cleanup(func() { root.Close() })
	return root
}

func BenchmarkStat(b *testing.B) {
	root := benchRoot(b)
	for b.Loop() {
		a, err := root.Walk("/a/b/c", true)
		must(b, err)
		_, err = a.Stat()
		must(b, err)
		a.Close()
	}
}

func BenchmarkOpen(b *testing.B) {
	root := benchRoot(b)
	for b.Loop() {
		a, err := root.Walk("/a/b/c", true)
		must(b, err)
		f, _, err := a.OpenFile(unix.O_RDONLY, 0)
		must(b, err)
		f.Close()
		a.Close()
	}
}

func BenchmarkReadDir(b *testing.B) {
	root := benchRoot(b)
	a, err := root.Walk("/many", true)
	must(b, err)
	defer a.Close()
	for _, withInfo := range []bool{false, true} {
		b.Run(fmt.Sprintf("info=%v", withInfo), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, a.ReadDir(withInfo, func(*Entry) error { return nil }))
			}
		})
	}
}
