package run

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// noLog is for what a test does not look at.
var noLog = slog.New(slog.DiscardHandler)

// TestBases: the order of the variables, and each place once.
func TestBases(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"condor", "osg", "tmp"} {
		check(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	check(t, os.Symlink("osg", dir+"/link"))
	t.Chdir(dir)
	for _, c := range []struct {
		env  environment
		want []string
	}{
		{nil, []string{"/tmp"}},
		{environment{"TMPDIR=" + dir + "/tmp", "OSG_WN_TMP=" + dir + "/osg", "_CONDOR_SCRATCH_DIR=" + dir + "/condor"},
			[]string{dir + "/condor", dir + "/osg", dir + "/tmp", "/tmp"}},
		{environment{"TMPDIR=" + dir + "/link", "OSG_WN_TMP=osg"}, []string{dir + "/osg", "/tmp"}},
		{environment{"TMPDIR=", "OSG_WN_TMP=" + dir + "/missing"}, []string{"/tmp"}},
		{environment{"TMPDIR=/tmp/."}, []string{"/tmp"}},
	} {
		if got := strings.Join(bases(c.env), ":"); got != strings.Join(c.want, ":") {
			t.Errorf("%q: %s, want %s", c.env, got, c.want)
		}
	}
}

// TestChooseBase: what cannot be used is passed over, and where nothing can, the
// error names each place and the way out.
func TestChooseBase(t *testing.T) {
	dir := t.TempDir()
	good, open, file := dir+"/good", dir+"/open", dir+"/file"
	check(t, os.Mkdir(good, 0o700))
	check(t, os.Mkdir(open, 0o700))
	check(t, os.Chmod(open, 0o777))
	check(t, os.WriteFile(file, nil, 0o600))

	got, err := chooseBase([]string{dir + "/missing", file, open, good, "/tmp"}, true, noLog)
	if err != nil || got != good {
		t.Errorf("%q, %v", got, err)
	}
	_, err = chooseBase([]string{file, open}, false, noLog)
	for _, text := range []string{file, open, "not a directory", "sticky", "TMPDIR"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in %v", text, err)
		}
	}
	check(t, os.Chmod(open, 0o777|os.ModeSticky))
	if got, err := chooseBase([]string{open}, true, noLog); err != nil || got != open {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNoexec: a file system without programs is refused for an application that is
// unpacked there, and good enough for one that is not.
func TestNoexec(t *testing.T) {
	needRoot(t)
	dir := tmpfs(t, "noexec")
	if _, err := chooseBase([]string{dir}, true, noLog); err == nil || !strings.Contains(err.Error(), "noexec") {
		t.Errorf("error %v", err)
	}
	if _, err := chooseBase([]string{dir}, false, noLog); err != nil {
		t.Error(err)
	}
}

// tmpfs mounts one for the time of a test.
func tmpfs(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", options, "run-test", dir).CombinedOutput(); err != nil {
		t.Skipf("no tmpfs can be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// made makes a scratch directory as a job does.
func made(t *testing.T, base, prefix string) *scratch {
	t.Helper()
	var told string
	s, err := newScratch(base, prefix, func(dir string) error {
		if exists(dir) {
			t.Error("made before it was told")
		}
		told = dir
		return nil
	})
	check(t, err)
	if st, err := os.Stat(s.dir); err != nil || st.Mode() != os.ModeDir|0o700 || told != s.dir {
		t.Errorf("%v, %v; %s was told", st.Mode(), err, told)
	}
	return s
}

// die is what the kernel does for a job that is killed.
func (s *scratch) die() { s.lock.Close() }

// TestSweep: directories of dead jobs go, whatever is in them, and nothing else.
func TestSweep(t *testing.T) {
	base := t.TempDir()
	live, dead, kept := made(t, base, scratchPrefix), made(t, base, scratchPrefix), made(t, base, preservedPrefix)
	defer live.die()
	outside := base + "/outside"
	check(t, os.WriteFile(outside, []byte("x"), 0o600))
	deep := dead.work() + "/a/b"
	check(t, os.MkdirAll(deep, 0o700))
	check(t, os.WriteFile(deep+"/f", nil, 0o400))
	check(t, os.Symlink(outside, deep+"/link"))
	check(t, os.Symlink(base, deep+"/up"))
	check(t, os.Chmod(deep, 0o500))
	check(t, os.Chmod(dead.work()+"/a", 0))
	dead.die()
	kept.die()

	uid := strconv.Itoa(os.Geteuid())
	others := []string{
		base + "/" + scratchPrefix + uid + "0-aa",          // of another user, by its name
		base + "/" + scratchPrefix + uid + "-of-elsewhere", // locked by another machine
		base + "/something-else",
	}
	for _, dir := range others {
		check(t, os.MkdirAll(dir+"/work", 0o700))
	}
	check(t, os.WriteFile(others[1]+"/lock-elsewhere", nil, 0o600))
	link := base + "/" + scratchPrefix + uid + "-link"
	check(t, os.Symlink(others[2], link))
	empty := base + "/" + scratchPrefix + uid + "-empty"
	check(t, os.Mkdir(empty, 0o700))

	sweep(context.Background(), base, noLog)
	for _, dir := range append(others, live.work(), kept.work(), link, outside, others[2]+"/work") {
		if !exists(dir) {
			t.Errorf("%s is gone", dir)
		}
	}
	for _, dir := range []string{dead.dir, empty} {
		if exists(dir) {
			t.Errorf("%s is there", dir)
		}
	}
}

// TestSweepOthers: a directory that another user made under our name stays.
func TestSweepOthers(t *testing.T) {
	needRoot(t)
	base := t.TempDir()
	s := made(t, base, scratchPrefix)
	s.die()
	check(t, os.Chown(s.dir, 65534, 65534))
	if err := sweepOne(s.dir); err == nil || !exists(s.work()) {
		t.Errorf("error %v", err)
	}
}

// TestSweptWhileMade: a directory that is swept between its making and its lock is
// made anew, under another name.
func TestSweptWhileMade(t *testing.T) {
	base := t.TempDir()
	tries := 0
	s, err := newScratch(base, scratchPrefix, func(dir string) error {
		if tries++; tries == 1 {
			return os.Mkdir(dir, 0o700)
		}
		return nil
	})
	if !errors.Is(err, os.ErrExist) || s != nil {
		t.Errorf("a taken name: %v", err)
	}
	for range 50 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 20 {
				sweep(context.Background(), base, noLog)
			}
		}()
		s := made(t, base, scratchPrefix)
		<-done
		if !exists(s.work()) || !exists(filepath.Join(s.dir, lockName())) {
			t.Fatal("swept although its job lives")
		}
		check(t, s.remove())
	}
	if left, err := readNames(base); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestSweepMounts: what is mounted in a dead job's directory is not emptied.
func TestSweepMounts(t *testing.T) {
	needRoot(t)
	base := t.TempDir()
	s := made(t, base, scratchPrefix)
	s.die()
	precious := t.TempDir()
	check(t, os.WriteFile(precious+"/f", nil, 0o600))
	check(t, os.Mkdir(s.work()+"/m", 0o700))
	if err := unix.Mount(precious, s.work()+"/m", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	defer unix.Unmount(s.work()+"/m", unix.MNT_DETACH)
	err := sweepOne(s.dir)
	if err == nil || !strings.Contains(err.Error(), s.work()+"/m") || !exists(precious+"/f") || !exists(filepath.Join(s.dir, lockName())) {
		t.Errorf("error %v", err)
	}
	check(t, unix.Unmount(s.work()+"/m", 0))
	check(t, sweepOne(s.dir))
	if exists(s.dir) {
		t.Error("still there")
	}
}
