package run

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"skeletonkey/installer"
)

// keeperArg is the hidden argument by which this program knows that it is a keeper.
const keeperArg = "job-keeper"

// ready is what a keeper says when signals no longer harm it.
const ready = "+"

// keeperPatience is how long a keeper tries to remove a directory.
const keeperPatience = time.Minute

// duty is what a keeper has to do when its job is gone.
type duty struct {
	Dir      string // the scratch directory, there or not
	Preserve bool   // do not remove it, but for the X.509 proxy
}

// keeper is a process of ours that outlives a job which is killed, and then removes
// what it left. It belongs to the job's process group, so that who kills the whole
// group is rid of it too.
type keeper struct {
	cmd  *exec.Cmd
	word *os.File // its end tells the keeper that the job is gone
}

// startKeeper starts a keeper, and waits until it can do its duty.
func startKeeper() (*keeper, error) {
	if err := keepDescriptors(); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", keeperArg)
	cmd.Args[0], cmd.Dir, cmd.Stdin = "skeletonkey", "/", r
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	k := &keeper{cmd, w}
	if text, err := io.ReadAll(out); string(text) != ready {
		k.end()
		return nil, fmt.Errorf("it did not come up: %q, %v", text, err)
	}
	return k, nil
}

// keepDescriptors keeps from programs that we start what we inherited: the ticket
// comes on a descriptor.
func keepDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == unix.ENOSYS || err == unix.EINVAL { // before Linux 5.11
		entries, err := readNames("/proc/self/fd")
		if err != nil {
			return err
		}
		for _, e := range entries {
			var fd int
			if _, err := fmt.Sscan(e, &fd); err == nil && fd > 2 {
				unix.CloseOnExec(fd)
			}
		}
		return nil
	}
	return err
}

// charge tells the keeper its duty; a later one replaces it.
func (k *keeper) charge(d duty) error {
	return json.NewEncoder(k.word).Encode(d)
}

// end ends the keeper, which first does what is left of its duty, and waits for it.
func (k *keeper) end() {
	k.word.Close()
	_ = k.cmd.Wait() // one that was killed has nothing to say
}

// keep is the whole life of a keeper.
func keep() int {
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2,
		unix.SIGPIPE, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	if _, err := os.Stdout.WriteString(ready); err != nil {
		return 1
	}
	os.Stdout.Close()
	var last, next duty
	for in := json.NewDecoder(os.Stdin); in.Decode(&next) == nil; last = next {
	}
	return last.do()
}

// do ends what is left of a job that is gone, again and again until all is gone:
// processes that are being killed may still write.
func (d duty) do() int {
	if d.Dir == "" {
		return 0
	}
	for end := time.Now().Add(keeperPatience); time.Now().Before(end); {
		killed := killMarked(d.Dir)
		err := detachBelow(d.Dir)
		switch {
		case err == nil && d.Preserve:
			err = installer.RemoveTree((&scratch{dir: d.Dir}).proxy())
		case err == nil:
			err = removeScratch(d.Dir, nil)
		}
		if err == nil && !killed {
			return 0
		}
		time.Sleep(20 * time.Millisecond)
	}
	return 1
}
