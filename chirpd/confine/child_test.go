package confine

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// TestChild reaches names of a directory that was entered, and nothing else.
func TestChild(t *testing.T) {
	dir := t.TempDir()
	root, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, path := range []string{"/", "/d"} {
		err := root.Do(path, false, func(a *At) error {
			if path == "/d" {
				if err := a.Mkdir(0o755); err != nil {
					return err
				}
			}
			inside, err := a.Enter()
			if err != nil {
				return err
			}
			defer inside.Close()
			for _, bad := range []string{"", ".", "..", "a/b", "/", ".__acl", "x\x00"} {
				if c, err := inside.Child(bad); !errors.Is(err, unix.EINVAL) {
					t.Errorf("Child(%q) in %s: %v, %v", bad, path, c, err)
				}
			}
			if _, err := a.Child("x"); path == "/d" && !errors.Is(err, unix.EINVAL) {
				t.Errorf("a child of what was not entered: %v", err)
			}
			c, err := inside.Child("f")
			if err != nil {
				return err
			}
			defer c.Close()
			f, _, err := c.OpenFile(unix.O_WRONLY|unix.O_CREAT, 0o644)
			if err != nil {
				return err
			}
			return f.Close()
		})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	for _, path := range []string{"/f", "/d/f"} {
		if err := root.Do(path, false, func(a *At) error { _, err := a.Stat(); return err }); err != nil {
			t.Error(err)
		}
	}
}
