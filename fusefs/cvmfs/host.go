package cvmfs

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// hostPatience bounds the wait for the host's automounter, and for a mount that hangs.
const hostPatience = 20 * time.Second

// HostMounted reports whether this machine shows the repository at /cvmfs/NAME: then
// that is better than a mount of one's own. Where an automounter is in charge, asking
// makes it mount. A mount that does not answer within 20 seconds does not count.
func HostMounted(name string) bool { return shownBelow("/cvmfs", name, hostPatience) }

// shownBelow reports whether base/name is a directory with something in it.
func shownBelow(base, name string, patience time.Duration) bool {
	if name == "" || strings.ContainsAny(name, "/\x00") || strings.HasPrefix(name, ".") {
		return false
	}
	found := make(chan bool, 1)
	go func() { // ends when the kernel lets it; nobody can end a system call on a dead mount
		dir, err := os.Open(filepath.Join(base, name))
		if err != nil {
			found <- false
			return
		}
		defer dir.Close()
		names, _ := dir.Readdirnames(1)
		found <- len(names) > 0
	}()
	select {
	case yes := <-found:
		return yes
	case <-time.After(patience):
		return false
	}
}
