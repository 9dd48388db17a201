package private

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// helperSpec is what a helper process, the outer of a test, does.
type helperSpec struct {
	Plan    Plan   // without files and log
	Probe   bool   // Probe instead of Run
	NoPivot bool   // pivot_root is refused
	Out     string // where the helperResult goes
	LogTo   string // where the log goes
}

// helperResult is what came of it.
type helperResult struct {
	Result Result
	Error  string
	Code   int // of an ExecError or MountError
	Is     []string
	Mounts []string // those of /proc/self/mountinfo that were not there before
}

// known are the errors that a helperResult can name.
var known = map[string]error{
	"ErrNoNamespace": ErrNoNamespace, "ErrNoFuse": ErrNoFuse,
	"ErrNoMountPoint": ErrNoMountPoint, "ErrDied": ErrDied,
}

// ourFailure is the exit code of a helper for errors without one.
const ourFailure = 96

// helper runs a plan as a command of ours would.
func helper(file string) int {
	os.Unsetenv(helperEnv)
	text, err := os.ReadFile(file)
	var spec helperSpec
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 99
	}
	spec.Plan.Stdin, spec.Plan.Stdout, spec.Plan.Stderr = os.Stdin, os.Stdout, os.Stderr
	log, err := os.OpenFile(spec.LogTo, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 98
	}
	spec.Plan.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if spec.NoPivot {
		if err := refusePivot(); err != nil {
			fmt.Fprintln(os.Stderr, "helper:", err)
			return 95
		}
	}
	before := mounts()
	var out helperResult
	err = out.run(&spec)
	out.Mounts = slices.DeleteFunc(mounts(), func(m string) bool { return slices.Contains(before, m) })
	return out.write(spec.Out, err)
}

// mounts lists the mounts of this process's namespace. Without root that is the
// machine's own, in which others may mount too: then only what could be ours.
func mounts() []string {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(m string) bool {
		return os.Getenv("TEST_SHARED") != "" && !strings.Contains(m, " skeletonkey ") && !strings.Contains(m, " fuse.private ")
	})
}

// run does the work.
func (r *helperResult) run(spec *helperSpec) (err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Signals()...)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if spec.Probe {
		return Probe(ctx)
	}
	r.Result, err = Run(ctx, spec.Plan, signals)
	return err
}

// write writes the result and returns the exit code.
func (r *helperResult) write(file string, err error) int {
	code := r.Result.ExitCode
	if r.Result.Signal != 0 {
		code = 128 + int(r.Result.Signal)
	}
	if err != nil {
		r.Error, code = err.Error(), ourFailure
		for name, e := range known {
			if errors.Is(err, e) {
				r.Is = append(r.Is, name)
			}
		}
		var ee *ExecError
		var me *MountError
		if errors.As(err, &ee) {
			r.Code, code = ee.ExitCode(), ee.ExitCode()
		} else if errors.As(err, &me) {
			r.Code = me.Code
		}
	}
	text, _ := json.Marshal(r)
	if err := os.WriteFile(file, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		return 97
	}
	return code
}

// refusePivot makes pivot_root fail with EINVAL in this process and its
// children, as it does where the root is an initramfs.
func refusePivot() error {
	const jumpIfEqual, load, ret = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: 0}, // the system call's number
		{Code: jumpIfEqual, K: unix.SYS_PIVOT_ROOT, Jt: 0, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
