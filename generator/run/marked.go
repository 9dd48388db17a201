package run

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// scratchVariable tells the application its scratch directory, and marks all that
// it starts as belonging to the job.
const scratchVariable = "SKELETONKEY_SCRATCH"

// killMarked sends SIGKILL to every process of this user whose environment says
// that it belongs to the job with the scratch directory dir, and says whether there
// was one. It is for jobs that are dead: one that lives ends in other ways.
func killMarked(dir string) bool {
	mark := []byte("\x00" + scratchVariable + "=" + filepath.Join(dir, workName) + "\x00")
	names, err := readNames("/proc")
	if err != nil {
		return false
	}
	found := false
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, err := os.ReadFile("/proc/" + name + "/environ") // empty for a zombie, refused for others' processes
		if err != nil || !bytes.Contains(append([]byte{0}, env...), mark) {
			continue
		}
		found = true
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return found
}
