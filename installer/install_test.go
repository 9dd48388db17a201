package installer

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func installOpts(prefix, from, version string, key *PrivateKey) InstallOptions {
	return InstallOptions{Prefix: prefix, From: from, Version: version, Resolve: resolveOpts(key)}
}

// inUse returns what the application under PREFIX/app/current says.
func inUse(t *testing.T, prefix string) string {
	t.Helper()
	text, err := os.ReadFile(prefix + "/app/current/version")
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(string(text))
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return strings.Join(all, " ")
}

func TestInstall(t *testing.T) {
	key := newTestKey(t)
	dir := published(t, key, "1.0", "1.1")
	from := serveDir(t, http.FileServer(http.Dir(dir)))
	prefix := t.TempDir() + "/new/prefix"
	step := func(version, wantVersion, wantNames string, changed bool) {
		t.Helper()
		got, err := Install(t.Context(), "app", installOpts(prefix, from, version, key))
		if err != nil {
			t.Fatal(err)
		}
		if got.Version != wantVersion || got.Changed != changed || inUse(t, prefix) != wantVersion {
			t.Errorf("%+v, in use %s, want %s", got, inUse(t, prefix), wantVersion)
		}
		if got := names(t, prefix+"/app"); got != wantNames {
			t.Errorf("there is %q, want %q", got, wantNames)
		}
	}
	step("1.0", "1.0", "1.0 current", true)
	step("1.0", "1.0", "1.0 current", false)
	step("latest", "1.1", "1.0 1.1 current previous", true)
	release(t, dir, "app-2.0.tar.zst", "2.0")
	publishAgain(t, dir, key)
	step("", "2.0", "1.1 2.0 current previous", true)
	back, err := Rollback(t.Context(), prefix, "app")
	if err != nil || back.Version != "1.1" || back.Previous != "2.0" || inUse(t, prefix) != "1.1" {
		t.Errorf("%+v, %v", back, err)
	}
	step("latest", "2.0", "1.1 2.0 current previous", true)
	step("1.0", "1.0", "1.0 2.0 current previous", true) // what is asked for by number may be older
	step("2.0", "2.0", "1.0 2.0 current previous", true)
	if err := os.Remove(dir + "/app-2.0.tar.zst"); err != nil {
		t.Fatal(err)
	}
	publishAgain(t, dir, key)
	step("latest", "2.0", "1.0 2.0 current previous", false) // never back by itself
	all, err := List(prefix)
	if err != nil || len(all) != 1 || all[0].Version != "2.0" || all[0].Previous != "1.0" || strings.Join(all[0].Versions, " ") != "2.0 1.0" {
		t.Errorf("%+v, %v", all, err)
	}
	out, err := exec.Command(all[0].Path + "/bin/app").Output()
	if string(out) != "2.0\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestInstallRefuses(t *testing.T) {
	key := newTestKey(t)
	for _, c := range []struct {
		name   string
		change func(dir string) error
		key    *PrivateKey
		want   error
		text   string
	}{
		{"another content", func(d string) error { return os.WriteFile(d+"/app-2.0.tar.zst", []byte("evil"), 0o644) }, key, ErrChecksum, ""},
		{"another content, no key", func(d string) error {
			return os.WriteFile(d+"/app-2.0.tar.zst", []byte("evil, and of another size than what is expected, so long"), 0o644)
		}, nil, ErrChecksum, ""},
		{"longer than listed", func(d string) error { return os.WriteFile(d+"/app-2.0.tar.zst", make([]byte, 1<<20), 0o644) }, nil, ErrTooLarge, ""},
		{"no archive", func(d string) error { return os.Remove(d + "/app-2.0.tar.zst") }, key, nil, "404"},
		{"no signature", func(d string) error { return os.Remove(d + "/" + SignatureFile) }, key, ErrSignature, ""},
		{"no checksum", func(d string) error { return errors.Join(os.Remove(d+"/"+IndexFile), os.Remove(d+"/"+SumsFile)) }, nil, nil, "nothing tells the checksum"},
		{"a hostile archive", func(d string) error {
			evil := string(tarball(t, member{name: "l", kind: '2', link: "/tmp"}, member{name: "l/x", body: "x"}))
			writeFile(t, d+"/app-2.0.tar.zst", evil)
			text := sumOf(evil) + "  app-2.0.tar.zst\n"
			return errors.Join(os.WriteFile(d+"/"+SumsFile, []byte(text), 0o644), os.WriteFile(d+"/"+SignatureFile, key.sign([]byte(text), SumsFile), 0o644))
		}, key, ErrUnsafe, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, prefix := published(t, key, "1.0", "2.0"), t.TempDir()
			from := serveDir(t, http.FileServer(http.Dir(dir)))
			if _, err := Install(t.Context(), "app", installOpts(prefix, from, "1.0", key)); err != nil {
				t.Fatal(err)
			}
			if err := c.change(dir); err != nil {
				t.Fatal(err)
			}
			_, err := Install(t.Context(), "app", installOpts(prefix, from, "", c.key))
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v", err)
			}
			if got := names(t, prefix+"/app"); got != "1.0 current" || inUse(t, prefix) != "1.0" {
				t.Errorf("there is %q, in use %s", got, inUse(t, prefix))
			}
		})
	}
	for _, name := range []string{"", "..", "a/b", ".hidden", "-x"} {
		if _, err := Install(t.Context(), name, installOpts(t.TempDir(), t.TempDir(), "", nil)); err == nil {
			t.Errorf("%q is a name", name)
		}
	}
	if _, err := Rollback(t.Context(), t.TempDir(), "app"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestInstallKilled ends the program before each step, by a signal that cannot be
// caught: the old version stays in use, and the next call finishes and cleans up.
func TestInstallKilled(t *testing.T) {
	const env = "INSTALLER_TEST_KILLED"
	if raw := os.Getenv(env); raw != "" { // this is the program
		var c struct{ Prefix, From, Step string }
		if err := json.Unmarshal([]byte(raw), &c); err != nil {
			t.Fatal(err)
		}
		opts := installOpts(c.Prefix, c.From, "", nil)
		opts.step = func(step string) {
			if step == c.Step {
				_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
				select {}
			}
		}
		_, err := Install(t.Context(), "app", opts)
		t.Fatal("not killed", err)
	}
	dir := published(t, nil, "1.0", "1.1", "2.0")
	for _, step := range []string{"fetch", "unpack", "publish", "switch", "current", "clean"} {
		t.Run(step, func(t *testing.T) {
			prefix := t.TempDir()
			for _, v := range []string{"1.0", "1.1"} {
				if _, err := Install(t.Context(), "app", installOpts(prefix, dir, v, nil)); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := json.Marshal(map[string]string{"Prefix": prefix, "From": dir, "Step": step})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command("/proc/self/exe", "-test.run=^TestInstallKilled$")
			cmd.Env = append(os.Environ(), env+"="+string(raw))
			out, err := cmd.CombinedOutput()
			if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
				t.Fatalf("%v\n%s", err, out)
			}
			want := "1.1"
			if step == "clean" { // after the switch
				want = "2.0"
			}
			if got := inUse(t, prefix); got != want {
				t.Errorf("in use %s, want %s", got, want)
			}
			got, err := Install(t.Context(), "app", installOpts(prefix, dir, "", nil))
			if err != nil || inUse(t, prefix) != "2.0" || got.Previous != "1.1" {
				t.Errorf("%+v, %v", got, err)
			}
			if got := names(t, prefix+"/app"); got != "1.1 2.0 current previous" {
				t.Errorf("there is %q", got)
			}
		})
	}
}

// TestInstallsAtOnce: two of them, and a third that has no time, do not disturb
// each other.
func TestInstallsAtOnce(t *testing.T) {
	dir, prefix := published(t, nil, "1.0", "1.1"), t.TempDir()
	var all sync.WaitGroup
	for _, v := range []string{"1.0", "1.1", "1.0", "1.1"} {
		all.Go(func() {
			if _, err := Install(t.Context(), "app", installOpts(prefix, dir, v, nil)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := names(t, prefix+"/app"); got != "1.0 1.1 current previous" {
		t.Errorf("there is %q", got)
	}
}

func TestInstallDiskFull(t *testing.T) {
	disk := smallDisk(t)
	dir := t.TempDir()
	release(t, dir, "app-1.0.tar.zst", "1.0")
	writeFile(t, dir+"/app-2.0.tar.zst", string(zstded(t, tarball(t, member{name: "big", body: strings.Repeat("0123456789abcdef", 1<<17)}))))
	publishAgain(t, dir, nil)
	if _, err := Install(t.Context(), "app", installOpts(disk, dir, "1.0", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(t.Context(), "app", installOpts(disk, dir, "2.0", nil)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v", err)
	}
	if got := names(t, disk+"/app"); got != "1.0 current" || inUse(t, disk) != "1.0" {
		t.Errorf("there is %q", got)
	}
}

func TestReplaceProgram(t *testing.T) {
	dir := published(t, nil, "2.0")
	exe := filepath.Join(t.TempDir(), "app")
	r, err := Resolve(t.Context(), dir, "app", "", "", resolveOpts(nil))
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, exe, "old")
	refused := errors.New("does not run")
	noProgram, other := r, r
	noProgram.Name, other.SHA256 = "else", sumOf("x")
	for _, c := range []struct {
		r    Release
		try  error
		want string
	}{{r, refused, "does not run"}, {noProgram, nil, "no program"}, {other, nil, "checksum mismatch"}, {Release{}, nil, "checksum"}} {
		err := ReplaceProgram(t.Context(), c.r, exe, quick(), func(string) error { return c.try })
		if text, _ := os.ReadFile(exe); err == nil || !strings.Contains(err.Error(), c.want) || string(text) != "old" {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if err := ReplaceProgram(t.Context(), r, exe, quick(), nil); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(exe).Output(); string(out) != "2.0\n" {
		t.Errorf("%q, %v", out, err)
	}
	if got := names(t, filepath.Dir(exe)); got != "app" {
		t.Errorf("left %q", got)
	}
}
