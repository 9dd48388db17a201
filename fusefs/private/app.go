package private

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The descriptors that the launcher inherits beside 0, 1 and 2.
const (
	appWordFD = 3 // a pipe: nothing but ready means that the exec has been done
	appSpecFD = 4
)

// ready is what the launcher writes just before it becomes the command; what
// follows, or comes instead, is a failure in JSON.
const ready = "+"

// runApp runs the command to its end.
func (in *inner) runApp() *failure {
	word, ended, f := in.launch()
	if f != nil || ended == nil { // failed, or a signal came before
		return f
	}
	text, err := io.ReadAll(io.LimitReader(word, maxMessage))
	word.Close()
	if string(text) == ready {
		in.started = true
		in.relay.started()
	}
	status := <-ended
	if in.started || status.Signaled() {
		in.status = status
		return nil
	}
	if err != nil || len(text) == 0 {
		return failed(kindOther, fmt.Sprintf("the launcher ended with code %d", status.ExitStatus()), err)
	}
	f = &failure{}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte(ready)), f); err != nil {
		return failed(kindOther, "what the launcher says makes no sense", err)
	}
	return f
}

// launch starts the launcher and returns the pipe for its word, and a channel
// for the status with which the command will end; nil when a signal has ended
// the preparations.
func (in *inner) launch() (word *os.File, ended chan syscall.WaitStatus, f *failure) {
	spec, err := pack(in.spec.App)
	if err != nil {
		return nil, nil, failed(kindOther, "start the launcher", err)
	}
	defer spec.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, failed(kindOther, "start the launcher", err)
	}
	defer w.Close()
	ok, err := in.relay.launch(func() (int, error) {
		return forkLauncher([]uintptr{0, 1, 2, w.Fd(), spec.Fd()})
	})
	if err != nil || !ok {
		r.Close()
		if err != nil {
			f = failed(kindOther, "start the launcher", err)
		}
		return nil, nil, f
	}
	ended = make(chan syscall.WaitStatus, 1)
	in.empty = make(chan struct{})
	go in.reap(ended)
	return r, ended, nil
}

// forkLauncher starts the launcher on a thread that stays for as long as this
// process, since Pdeathsig strikes when the thread dies.
func forkLauncher(files []uintptr) (int, error) {
	type forked struct {
		pid int
		err error
	}
	result := make(chan forked)
	go func() {
		runtime.LockOSThread()
		attr := &syscall.ProcAttr{Files: files, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}}
		pid, err := syscall.ForkExec("/proc/self/exe", []string{"skeletonkey", appArg}, attr)
		result <- forked{pid, err}
		if err == nil {
			select {}
		}
	}()
	f := <-result
	return f.pid, f.err
}

// reap waits for every child, orphans included, until none is left, and sends
// the command's status to ended.
func (in *inner) reap(ended chan<- syscall.WaitStatus) {
	defer close(in.empty)
	for {
		err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil { // ECHILD
			return
		}
		in.relay.reap(func(command int) bool {
			var status syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if err != nil || pid != command {
				return false
			}
			ended <- status
			return true
		})
	}
}

// killRest kills every process that is left in the namespace, and waits until
// they are gone. One that waits for a file system dies when that has answered.
func (in *inner) killRest(ctx context.Context) {
	if in.empty == nil {
		return
	}
	for {
		if in.spec.PID {
			_ = unix.Kill(-1, unix.SIGKILL)
		} else {
			killDescendants()
		}
		select {
		case <-in.empty:
			return
		case <-ctx.Done():
			in.log.Warn("processes that the command left do not die")
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
