package confine

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// FuzzWalk compares walks with the kernel's own, which can be told to stay below a root:
// what it finds, the walk must find, and nothing else.
func FuzzWalk(f *testing.F) {
	for _, seed := range [][2]string{
		{"a/l/f", "../a/b"}, {"l", "/"}, {"a/l/../../l", "../../../outside"}, {"a/b/../b/f", ""},
		{"l/l/l", "."}, {"a/l", "/a/b/./f"}, {"a/l/x", "b/none"}, {"//a//b/", "l"}, {"a/up/top", "/a/up/.."},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, path, target string) {
		tr := newTree(t, Options{})
		if !tr.fast {
			t.Skip("the kernel has no openat2")
		}
		tr.write("a/b/f", "f")
		tr.write("top", "top")
		tr.symlink("..", "a/up")
		for _, link := range []string{"l", "a/l"} {
			if err := os.Symlink(target, tr.real(link)); err != nil {
				t.Skip("not a target")
			}
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
		want := Info{}
		kernel, kernelErr := unix.Openat2(tr.fd, "./"+path, &how)
		if kernelErr == nil {
			var err error
			want, err = statFd(kernel)
			unix.Close(kernel)
			must(t, err)
		}
		for _, fast := range []bool{true, false} {
			tr.fast = fast
			got := Info{}
			err := tr.Do(path, true, func(a *At) (err error) { got, err = a.Stat(); return err })
			switch {
			case errors.Is(err, ErrPrivate):
			case kernelErr == nil && (err != nil || got.id() != want.id()):
				t.Fatalf("%q with links to %q: %+v, %v; the kernel finds %+v", path, target, got, err, want)
			case kernelErr != nil && err == nil && kernelErr != unix.ENOTDIR:
				// Only a slash after a file is forgiven here.
				t.Fatalf("%q with links to %q: %+v; the kernel says %v", path, target, got, kernelErr)
			}
		}
	})
}
