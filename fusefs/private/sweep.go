package private

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// processes lists the process numbers in /proc.
func processes() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var pids []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// parentOf returns a process's parent, and false for a process that is gone.
func parentOf(pid int) (int, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// PID (NAME) STATE PARENT ...; the name may hold anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 2 {
		return 0, false
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	return ppid, err == nil
}

// killDescendants sends SIGKILL to every descendant of this process, and says
// whether there was one; dead ones count until they are reaped. Those whose
// parent dies meanwhile become our children, and are found the next time.
func killDescendants() bool {
	children := make(map[int][]int)
	for _, pid := range processes() {
		if parent, ok := parentOf(pid); ok {
			children[parent] = append(children[parent], pid)
		}
	}
	found := false
	for queue := children[os.Getpid()]; len(queue) > 0; queue = queue[1:] {
		found = true
		_ = unix.Kill(queue[0], unix.SIGKILL)
		queue = append(queue, children[queue[0]]...)
	}
	return found
}

// openNamespace opens the mount namespace of a process, nil if that is our own
// or not to be had. As long as it is open its number is not given to another.
func openNamespace(pid int) *os.File {
	f, err := os.Open(namespaceOf(pid))
	if err != nil {
		return nil
	}
	if st, err := f.Stat(); err != nil || isNamespace(st, os.Getpid()) {
		f.Close()
		return nil
	}
	return f
}

// namespaceOf is the file that stands for a process's mount namespace.
func namespaceOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/ns/mnt" }

// isNamespace says whether st is that of a process's mount namespace.
func isNamespace(st os.FileInfo, pid int) bool {
	its, err := os.Stat(namespaceOf(pid))
	return err == nil && os.SameFile(st, its)
}

// killNamespace sends SIGKILL to every process of a mount namespace until there
// is none, or for two seconds.
func killNamespace(ns *os.File) {
	st, err := ns.Stat()
	if err != nil {
		return
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		found := false
		for _, pid := range processes() {
			if isNamespace(st, pid) {
				found = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if !found {
			return
		}
	}
}
