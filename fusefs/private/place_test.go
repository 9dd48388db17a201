package private

import (
	"os"
	"strings"
	"testing"
)

// at gives a plan's one mount another place.
func (p Plan) at(place string) Plan {
	p.Mounts[0].Where = place
	return p
}

// TestPlaces: where mounts may be.
func TestPlaces(t *testing.T) {
	eachUser(t, func(t *testing.T, v variant) {
		dir := openDir(t)
		check(t, os.MkdirAll(dir+"/sub/deep", 0o777))
		check(t, os.Symlink(dir+"/sub", dir+"/link"))
		check(t, os.WriteFile(dir+"/file", nil, 0o666))
		for place, want := range map[string]string{
			"/data":             "",
			"/data/one/two":     "",
			Home:                "",
			"/chirp/a/b":        "",
			dir + "/sub":        "",
			dir + "/link/deep":  "",
			dir + "/sub/new":    "none may be made there",
			dir + "/link/x/y":   "none may be made there",
			dir + "/file":       "not a directory",
			dir + "/file/below": "not a directory",
		} {
			if want != "" && !v.user {
				continue
			}
			o := job{plan: script("cat $1/hello", place).at(place)}.of(v).run(t)
			if want == "" {
				o.expect(t, 0, "hello, world\n")
			} else {
				o.expectError(t, "ErrNoMountPoint", want)
			}
		}
		if entries, err := os.ReadDir(dir + "/sub"); err != nil || len(entries) != 1 {
			t.Errorf("%v, %v", entries, err)
		}
	})
}

// TestSeveralMounts: beside and inside each other, under an umask that would
// keep others out.
func TestSeveralMounts(t *testing.T) {
	eachUser(t, func(t *testing.T, v variant) {
		p := script("umask; stat -c %a /chirp; cat /chirp/b/hello /sub/hello")
		p.Mounts = []Mount{
			{Where: "/chirp/a", Config: []byte(`{"Hello":"a\n"}`)},
			{Where: "/chirp/b", Config: []byte(`{"Hello":"b\n"}`)},
			{Where: "/sub", Config: []byte(`{"Hello":"sub\n"}`)},
		}
		setup := ""
		if os.Geteuid() == 0 {
			setup = "umask 077"
		}
		o := job{plan: p, setup: setup}.of(v).run(t)
		o.stdout = strings.Replace(o.stdout, "0022", "0077", 1)
		o.expect(t, 0, "0077\n755\nb\nsub\n")
	})
}

// TestNested: a run inside a run, where Home exists and cannot be written.
func TestNested(t *testing.T) {
	eachUser(t, func(t *testing.T, v variant) {
		inner := job{plan: script("cat /chirp/other/hello; ls /chirp; exit 6").at("/chirp/other")}.of(v).start(t)
		want := inner.wait() // leaves the spec that is used again
		want.expect(t, 6, "hello, world\nother\n")
		outer := script("cd; export HOME=/ "+helperEnv+"=$1; exec $2", inner.dir+"/spec", binary(t))
		job{plan: outer}.of(v).run(t).expect(t, 6, "hello, world\nhost:9094\nother\n")

		// The same place again: the inner mount covers the outer one.
		inner = job{plan: script("ls -d /chirp/*; exit 6")}.of(v).start(t)
		inner.wait()
		outer = script("export "+helperEnv+"=$1; exec $2", inner.dir+"/spec", binary(t))
		job{plan: outer}.of(v).run(t).expect(t, 6, where+"\n")
	})
}

// ownRoot makes a root directory with a /chirp of its own.
const ownRoot = `mount --make-rprivate /; mkdir $TEST_DIR/root; mount -t tmpfs root $TEST_DIR/root; cd $TEST_DIR/root
	for d in usr etc dev proc tmp sys; do mkdir $d; mount --rbind /$d $d; done
	for l in bin lib lib64 sbin; do [ ! -e /$l ] || ln -s usr/$l $l; done
	mkdir -p old chirp/mine; echo mine >chirp/mine/file
	pivot_root . old; umount -l /old; cd /
	dead() { exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 dead $1; exec 9>&-; }
	`

// TestHomeThatExists: where the machine has a /chirp, with a dead mount or that
// of another user in it or over it, ours is there all the same.
func TestHomeThatExists(t *testing.T) {
	eachUser(t, func(t *testing.T, v variant) {
		needRoot(t)
		for setup, want := range map[string]string{
			"":                                   "host:9094\nmine\nmine\n",
			"mkdir " + where + "; dead " + where: "host:9094\nmine\nmine\n",
			"dead /chirp":                        "host:9094\n",
		} {
			text := "cat " + where + "/hello; ls /chirp; cat /chirp/mine/file 2>/dev/null || true"
			j := job{setup: ownRoot + setup, dir: "/", plan: script(text)}.of(v)
			j.run(t).expect(t, 0, "hello, world\n"+want)
		}
	})
}

// TestPropagation: what is mounted outside later appears inside, as automounted
// homes do, and not the other way round.
func TestPropagation(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		needRoot(t)
		setup := `mkdir -m 777 $TEST_DIR/late $TEST_DIR/own
			(until [ -e $TEST_DIR/go ]; do sleep 0.02; done
			mount -t tmpfs late $TEST_DIR/late; echo late >$TEST_DIR/late/file; chmod 666 $TEST_DIR/late/file
			until [ -e $TEST_DIR/stop ]; do sleep 0.02; done; umount $TEST_DIR/late) </dev/null >/dev/null &`
		text := `[ ! -e $TEST_DIR/late/file ] && touch $TEST_DIR/go; until [ -s $TEST_DIR/late/file ]; do sleep 0.02; done; cat $TEST_DIR/late/file
			mount -t tmpfs own $TEST_DIR/own 2>/dev/null; touch $TEST_DIR/own/x $TEST_DIR/stop
			until [ ! -e $TEST_DIR/late/file ]; do sleep 0.02; done; sleep 0.1`
		r := job{setup: setup, plan: script(text)}.of(v).start(t)
		r.wait().expect(t, 0, "late\n")
		if _, err := os.Stat(r.dir + "/own/x"); v.user != (err == nil) {
			t.Errorf("the mount inside: %v", err)
		}
	})
}

// TestInPlace: where the root cannot be replaced, existing places serve.
func TestInPlace(t *testing.T) {
	eachWay(t, func(t *testing.T, v variant) {
		dir := openDir(t)
		for place, want := range map[string]string{dir: "", where: "none may be made there"} {
			o := job{noPivot: true, plan: script("cat $1/hello; setsid sleep 1000 &", place).at(place)}.of(v).run(t)
			if want != "" {
				o.expectError(t, "ErrNoMountPoint", want)
				continue
			}
			o.expect(t, 0, "hello, world\n")
			if !strings.Contains(o.log, `root="in place"`) {
				t.Errorf("log:\n%s", o.log)
			}
		}
	})
}

// TestChroot: in one whose directory is no mount point mounts would show
// outside; in another existing places serve, but not an ordinary user.
func TestChroot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	setup := func(root, user string) string {
		return `mkdir $TEST_DIR/root; cd $TEST_DIR/root; ` + root + `; cd $TEST_DIR/root; mkdir -p .` + where + `
			for d in usr etc dev proc tmp sys; do mkdir $d; mount --rbind /$d $d; done
			for l in bin lib lib64 sbin; do [ ! -e /$l ] || ln -s usr/$l $l; done
			exec chroot ` + user + ` . "$0"`
	}
	job{setup: setup("mount --bind . .", ""), plan: script("cat " + where + "/hello")}.run(t).
		expect(t, 0, "hello, world\n")
	job{setup: setup("true", ""), plan: script("true")}.run(t).
		expectError(t, "ErrNoNamespace", "mount --bind DIR DIR")
	job{setup: setup("true", "--userspec=65534:65534"), plan: script("true")}.run(t).
		expectError(t, "ErrNoNamespace", "as in a chroot")
}
