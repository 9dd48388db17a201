package confine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Case 22: a directory is empty when nothing is in it but private files, and nothing has
// been removed when it is not.
func TestRmdir(t *testing.T) {
	suite(t, func(tr *tree) {
		tr.mkdir("empty", "parent/sub", "odd/.__dir/x")
		tr.write("acl/.__acl", "a")
		tr.write("odd/.__dir/f", "")
		tr.write("odd/.__acl", "a")
		tr.write("full/f", "f")
		tr.write("full/.__acl", "a")
		tr.write("parent/.__acl", "a")
		tr.write("f", "")
		tr.symlink("empty", "link")
		for path, want := range map[string]error{
			"/": unix.EBUSY, "/f": unix.ENOTDIR, "/link": unix.ENOTDIR, "/none": unix.ENOENT,
			"/full": unix.ENOTEMPTY, "/parent": unix.ENOTEMPTY,
			"/empty": nil, "/acl": nil, "/odd": nil,
		} {
			if err := tr.at(path, false).Rmdir(); !errors.Is(err, want) {
				tr.Errorf("rmdir %s: %v, want %v", path, err, want)
			}
		}
		if got := tr.names("/"); !slices.Equal(got, []string{"f", "full", "link", "parent"}) {
			tr.Errorf("left: %q", got)
		}
		if tr.content("full/.__acl") != "a" || tr.content("full/f") != "f" || tr.content("parent/.__acl") != "a" {
			tr.Error("something was removed from a directory that is not empty")
		}
	})
}

// Whoever creates a file while the directory is removed either fails or finds the
// directory with its file and its ACL.
func TestRmdirAgainstCreate(t *testing.T) {
	tr := newTree(t, Options{})
	for i := range 300 {
		must(t, tr.at("/d", true).Mkdir(0o755, Private{".__acl", []byte("acl")}))
		inside, err := tr.at("/d", true).Enter()
		must(t, err)
		created := make(chan error)
		go func() {
			fd, err := openat(inside.fd, "f", unix.O_WRONLY|unix.O_CREAT, 0o644)
			if err == nil {
				unix.Close(fd)
			}
			created <- err
		}()
		removed := tr.at("/d", true).Rmdir()
		made := <-created
		inside.Close()
		switch {
		case removed == nil && made != nil:
			if left := tr.names("/"); len(left) != 0 {
				t.Fatalf("round %d: removed, but left %q", i, left)
			}
		case errors.Is(removed, unix.ENOTEMPTY) && made == nil:
			if left := tr.names("/d"); !slices.Equal(left, []string{".__acl", "f"}) || len(tr.names("/")) != 1 {
				t.Fatalf("round %d: not removed, and left %q", i, left)
			}
			must(t, tr.at("/d", true).RemoveAll(t.Context(), nil))
		default:
			t.Fatalf("round %d: rmdir %v, create %v", i, removed, made)
		}
	}
}

func TestRemoveAll(t *testing.T) {
	suite(t, func(tr *tree) {
		must(tr, os.WriteFile(tr.outside+"/keep", []byte("keep"), 0o644))
		tr.write("d/a/b/c/f", "")
		tr.write("d/a/.__acl", "")
		tr.write("d/.__acl", "")
		tr.mkdir("d/e/.__private/x")
		tr.symlink(tr.outside, "d/a/out")
		tr.symlink("../..", "d/a/up")
		tr.symlink("d", "link")
		must(tr, unix.Mkfifo(tr.real("d/fifo"), 0o600))
		tr.write("file", "")
		var seen []string
		check := func(dir *At) error {
			seen = append(seen, dir.Path())
			_, err := dir.StatPrivate(".__acl")
			if err != nil && !errors.Is(err, unix.ENOENT) {
				return err
			}
			return nil
		}
		must(tr, tr.at("/file", false).RemoveAll(tr.Context(), check))
		must(tr, tr.at("/link", false).RemoveAll(tr.Context(), check))
		if len(seen) != 0 {
			tr.Errorf("asked for %q, which are no directories", seen)
		}
		must(tr, tr.at("/d", false).RemoveAll(tr.Context(), check))
		slices.Sort(seen)
		if want := []string{"/d", "/d/a", "/d/a/b", "/d/a/b/c", "/d/e"}; !slices.Equal(seen, want) {
			tr.Errorf("asked for %q, want %q", seen, want)
		}
		if got := tr.names("/"); len(got) != 0 {
			tr.Errorf("left %q", got)
		}
		if data, err := os.ReadFile(tr.outside + "/keep"); string(data) != "keep" {
			tr.Errorf("outside: %q, %v", data, err)
		}
		wantErr(tr, "root", tr.at("/", false).RemoveAll(tr.Context(), nil), unix.EBUSY)
		wantErr(tr, "nothing", tr.at("/none", false).RemoveAll(tr.Context(), nil), unix.ENOENT)
	})
}

// A refusal leaves the directory as it was, and those above it with their ACLs.
func TestRemoveAllRefused(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("d/.__acl", "")
	tr.write("d/a/.__acl", "")
	tr.write("d/a/keep/.__acl", "")
	tr.write("d/a/keep/f", "")
	refusal := errors.New("refused")
	err := tr.at("/d", false).RemoveAll(t.Context(), func(dir *At) error {
		if dir.Path() == "/d/a/keep" {
			return refusal
		}
		return nil
	})
	if err != refusal {
		t.Error(err)
	}
	for _, path := range []string{"d/.__acl", "d/a/.__acl", "d/a/keep/.__acl", "d/a/keep/f"} {
		tr.content(path)
	}
}

func TestRemoveAllEnds(t *testing.T) {
	tr := newTree(t, Options{})
	tr.write("d/f", "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "cancelled", tr.at("/d", false).RemoveAll(ctx, nil), context.Canceled)
	tr.content("d/f")
}

// Deeper than a path can be long, wider than a batch, with few descriptors.
func TestRemoveAllDeepAndWide(t *testing.T) {
	inMemory(t)
	tr := newTree(t, Options{})
	tr.mkdir("d")
	top, err := os.Open(tr.real("d"))
	must(t, err)
	defer top.Close()
	for i := range 2 * removeBatch {
		name := fmt.Sprintf("w%d", i)
		must(t, unix.Mkdirat(int(top.Fd()), name, 0o755))
		must(t, unix.Mknodat(int(top.Fd()), name+"/f", unix.S_IFREG|0o644, 0))
	}
	fd, err := unix.Dup(int(top.Fd()))
	must(t, err)
	for range 3000 {
		must(t, unix.Mkdirat(fd, "deep", 0o755))
		next, err := openat(fd, "deep", dirFlags, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	unix.Close(fd)
	deepest := 0
	err = tr.at("/d", false).RemoveAll(t.Context(), func(dir *At) error {
		if depth := len(dir.Path()) / len("/deep"); depth > deepest {
			deepest = depth
			if depth%500 == 0 && len(heldBelow(t, tr.dir)) > 8 {
				return fmt.Errorf("%d descriptors at depth %d", len(heldBelow(t, tr.dir)), depth)
			}
		}
		return nil
	})
	if err != nil || deepest < 3000 || len(tr.names("/")) != 0 {
		t.Errorf("%v, depth %d, left %q", err, deepest, tr.names("/"))
	}
}
