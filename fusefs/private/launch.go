package private

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// defaultPath is searched when the command's environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// launch is the launcher: it makes of this process the command. It returns
// only when that fails.
func launch() int {
	runtime.LockOSThread() // capabilities are the thread's
	word := os.NewFile(appWordFD, "word")
	var f *failure
	var spec appSpec
	if err := unpack(appSpecFD, &spec); err != nil {
		f = failed(kindOther, "start the launcher", err)
	} else {
		f = spec.become(word)
	}
	if body, err := json.Marshal(f); err == nil {
		_, _ = word.Write(body)
	}
	return 1
}

// become replaces this process by the command. What it returns is why not.
func (s *appSpec) become(word io.Writer) *failure {
	if err := os.Chdir(string(s.Dir)); err != nil {
		return failed(kindOther, "enter the working directory "+string(s.Dir), err)
	}
	env := strs(s.Env)
	path, err := lookPath(s.program(), env)
	if err != nil {
		return execFailure(s.program(), err)
	}
	if s.Confine {
		if err := confine(s.Caps); err != nil {
			return failed(kindOther, "give up capabilities", err)
		}
	}
	if err := closeOnExec(); err != nil {
		return failed(kindOther, "keep descriptors from the command", err)
	}
	if _, err := io.WriteString(word, ready); err != nil {
		return failed(kindOther, "speak to the serving process", err)
	}
	argv := strs(s.Argv)
	err = syscall.Exec(path, argv, env)
	if err == syscall.ENOEXEC && isText(path) { // a script without #!, as execvp does it
		err = syscall.Exec("/bin/sh", append([]string{"sh", path}, argv[1:]...), env)
	}
	if errors.Is(err, fs.ErrNotExist) && exists(path) {
		err = unix.ELIBACC // it is the interpreter that is missing
	}
	return execFailure(path, err)
}

// program is what to look up.
func (s *appSpec) program() string {
	if s.Path != "" {
		return string(s.Path)
	}
	return string(s.Argv[0])
}

// execFailure is a failure to start path.
func execFailure(path string, err error) *failure {
	f := failed(kindExec, "start "+path, err)
	f.Path = raw(path)
	return f
}

// lookPath finds a program as a shell does: the first in PATH that can be
// executed, else EACCES if there was one that cannot, else ENOENT.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	path := defaultPath
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	var found error = syscall.ENOENT
	for _, dir := range filepath.SplitList(path) {
		if name == "" {
			break
		}
		file := dir + "/" + name
		if dir == "" {
			file = "./" + name
		}
		err := executable(file)
		if err == nil {
			return file, nil
		}
		if err == syscall.EACCES {
			found = err
		}
	}
	return "", found
}

// executable returns nil if a file may be executed, else an errno; ENOENT when
// it does not exist.
func executable(file string) error {
	st, err := os.Stat(file)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errno == syscall.ENOTDIR:
		return syscall.ENOENT
	case errors.As(err, &errno):
		return errno
	case !st.Mode().IsRegular():
		return syscall.EACCES
	}
	return unix.Access(file, unix.X_OK)
}

// isText says whether a file may be a script: a shell would take any other
// file for one too, and do harm.
func isText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 128)
	n, _ := io.ReadFull(f, head)
	return bytes.IndexByte(head[:n], 0) < 0
}

// closeOnExec keeps every descriptor but 0, 1 and 2 from the command: ours, those
// that leaked into the outer, and /dev/fuse, which go-fuse leaves to children.
func closeOnExec() error {
	entries, err := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return err
}
