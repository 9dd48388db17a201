package installer

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithoutOpenat2 runs the tests of extraction again where the kernel has no
// openat2.
func TestWithoutOpenat2(t *testing.T) {
	if os.Getenv(noOpenat2Env) != "" {
		fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH})
		if err != unix.ENOSYS {
			t.Fatalf("openat2 gives %d, %v", fd, err)
		}
		return
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^Test(WithoutOpenat2|Hostile.*|Race.*|Modes|RealArchives|RemoveTree.*)$")
	cmd.Env = append(os.Environ(), noOpenat2Env+"=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestDescriptorsAreGivenBack: parents are cached, but not without bound, and all
// descriptors are given back.
func TestDescriptorsAreGivenBack(t *testing.T) {
	count := func() int {
		names, err := filepath.Glob("/proc/self/fd/*")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	var members []member
	for i := range 100 {
		dir := string(rune('a'+i%26)) + "/" + string(rune('a'+i/26))
		members = append(members, member{name: dir + "/f"}, member{name: dir + "/s", kind: '2', link: "f"},
			member{name: dir + "/h", kind: '1', link: dir + "/f"})
	}
	archive := tarball(t, members...)
	before := count()
	for range 3 {
		if _, _, err := extract(t, archive, UnpackOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := extract(t, archive[:len(archive)/2+700], UnpackOptions{}); err == nil {
			t.Fatal("half an archive was accepted")
		}
	}
	if after := count(); after != before {
		t.Errorf("%d descriptors, %d before", after, before)
	}
}
