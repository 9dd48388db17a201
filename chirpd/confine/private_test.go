package confine

import (
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestPrivateFiles(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.mkdir("d")
		a := tr.at("/d/anything", true)
		_, _, err := a.ReadPrivate(".__acl", 100)
		wantErr(tr, "none yet", err, unix.ENOENT)
		_, err = a.StatPrivate(".__acl")
		wantErr(tr, "none yet", err, unix.ENOENT)
		for _, text := range []string{"unix:bob rl\n", "", "unix:bob rwlda\n"} {
			must(tr, a.WritePrivate(".__acl", []byte(text), 0o4644))
			data, info, err := a.ReadPrivate(".__acl", int64(len(text)))
			same, err2 := a.StatPrivate(".__acl")
			if string(data) != text || err != nil || err2 != nil || info.Mode != unix.S_IFREG|0o644 {
				tr.Errorf("%q, %o, %v, %v", data, info.Mode, err, err2)
			}
			if same.Ino != info.Ino || same.Ctime != info.Ctime {
				tr.Errorf("stat gives %+v, reading %+v", same, info)
			}
		}
		_, _, err = a.ReadPrivate(".__acl", 3)
		wantErr(tr, "too large", err, unix.EFBIG)
		if got := tr.names("d"); !slices.Equal(got, []string{".__acl"}) {
			tr.Errorf("left %q", got)
		}
		must(tr, a.RemovePrivate(".__acl"))
		wantErr(tr, "removed", a.RemovePrivate(".__acl"), unix.ENOENT)
	})
}

func TestPrivateNamesOnly(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("f", "f")
	a := tr.at("/f", true)
	for _, name := range []string{"", "f", ".", "..", "._f", ".__/../f", ".__a\x00", "/.__acl"} {
		_, _, err := a.ReadPrivate(name, 10)
		wantErr(t, "read "+name, err, unix.EINVAL)
		_, err = a.StatPrivate(name)
		wantErr(t, "stat "+name, err, unix.EINVAL)
		wantErr(t, "write "+name, a.WritePrivate(name, nil, 0o644), unix.EINVAL)
		wantErr(t, "remove "+name, a.RemovePrivate(name), unix.EINVAL)
	}
}

// What stands in the place of a private file is not followed and does not block.
func TestPrivateImpostors(t *testing.T) {
	tr := newTree(t, Options{})
	must(t, os.WriteFile(tr.outside+"/acl", []byte("unix:* rwlda\n"), 0o644))
	tr.symlink(tr.outside+"/acl", ".__link")
	must(t, unix.Mkfifo(tr.real(".__fifo"), 0o644))
	tr.mkdir(".__dir")
	a := tr.at("/f", true)
	for name, want := range map[string]error{".__link": unix.ELOOP, ".__fifo": ErrPipe, ".__dir": unix.EISDIR} {
		_, _, err := a.ReadPrivate(name, 100)
		wantErr(t, name, err, want)
	}
	must(t, a.WritePrivate(".__link", []byte("mine"), 0o600))
	if data, err := os.ReadFile(tr.outside + "/acl"); string(data) != "unix:* rwlda\n" {
		t.Errorf("outside: %q, %v", data, err)
	}
	for _, name := range []string{".__link", ".__fifo", ".__dir"} {
		must(t, a.RemovePrivate(name))
	}
}

// Readers see the old content or the new, never a part.
func TestWritePrivateIsAtomic(t *testing.T) {
	inMemory(t)
	tr := newTree(t, Options{})
	contents := []string{"short", string(slices.Repeat([]byte("long"), 5000))}
	a := tr.at("/f", true)
	must(t, a.WritePrivate(".__acl", []byte(contents[0]), 0o644))
	var writer sync.WaitGroup
	done := make(chan struct{})
	writer.Go(func() {
		defer close(done)
		b, err := tr.Walk("/f", true)
		if err != nil {
			t.Error(err)
			return
		}
		defer b.Close()
		for i := range 500 {
			if err := b.WritePrivate(".__acl", []byte(contents[i%2]), 0o644); err != nil {
				t.Error(err)
			}
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		data, _, err := a.ReadPrivate(".__acl", 1<<20)
		if err != nil || !slices.Contains(contents, string(data)) {
			t.Fatalf("%d bytes, %v", len(data), err)
		}
	}
	writer.Wait()
}
