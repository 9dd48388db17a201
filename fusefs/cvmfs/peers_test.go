package cvmfs

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"skeletonkey/fusefs/cvmfs/cvmfstest"
)

// freePort is one at which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	return nobody(t)[len("http://"):]
}

// daemon runs a program until the test ends, and waits until it listens at addr.
func daemon(t *testing.T, addr string, who *syscall.Credential, command ...string) {
	t.Helper()
	path, err := exec.LookPath(command[0])
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + command[0]); err != nil {
			missing(t, command[0]+" is not installed")
		}
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-done
		}
	})
	for {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return
		}
		select {
		case <-done:
			t.Fatalf("%s ended at once", command[0])
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// nginx serves root; its log has the time in seconds and the path of each request.
func nginx(t *testing.T, root string) (addr, accessLog string) {
	t.Helper()
	dir := t.TempDir()
	addr, accessLog = freePort(t), filepath.Join(dir, "access.log")
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // so that it can read what is root's
	}
	conf := fmt.Sprintf(`%s
daemon off; worker_processes 1; pid %[2]s/pid; error_log %[2]s/error.log;
events { worker_connections 512; }
http {
  log_format brief '$msec $uri $status'; access_log %[3]s brief;
  client_body_temp_path %[2]s/b; proxy_temp_path %[2]s/p; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
  keepalive_requests 100000;
  server { listen %[4]s; root %[5]s; }
}
`, user, dir, accessLog, addr, root)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon(t, addr, nil, "nginx", "-p", dir, "-e", dir+"/error.log", "-c", file)
	return addr, accessLog
}

// squid is a caching proxy.
func squid(t *testing.T) (addr string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "squid-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var who *syscall.Credential
	if os.Geteuid() == 0 { // it does not want to be root
		who = &syscall.Credential{Uid: 65534, Gid: 65534}
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	addr = freePort(t)
	conf := fmt.Sprintf(`http_port %s
http_access allow all
cache_mem 64 MB
access_log none
cache_log %[2]s/cache.log
cache_store_log none
pid_filename %[2]s/pid
coredump_dir %[2]s
shutdown_lifetime 0 seconds
pinger_enable off
visible_hostname localhost
`, addr, dir)
	file := filepath.Join(dir, "squid.conf")
	if err := os.WriteFile(file, []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon(t, addr, who, "squid", "-n", "sk"+filepath.Base(dir)[len("squid-"):], "-N", "-f", file) // what it shares is named after -n
	return addr
}

// readLog reads nginx's log: how often each path was asked for, and when objects were.
func readLog(t *testing.T, path string) (hits map[string]int, times []time.Time) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	hits = make(map[string]int)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var at, uri, status string
		if _, err := fmt.Sscan(lines.Text(), &at, &uri, &status); err != nil || status != "200" && status != "304" {
			t.Errorf("the log has %q", lines.Text())
			continue
		}
		hits[uri]++
		seconds, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(uri, "/data/") {
			times = append(times, time.UnixMilli(int64(seconds*1000)))
		}
	}
	return hits, times
}

// TestThroughSquid reads repositories that nginx serves by way of squid.
func TestThroughSquid(t *testing.T) {
	proxy := squid(t)
	t.Run("far", func(t *testing.T) { testFarSquid(t, proxy) })
	t.Run("real", func(t *testing.T) { testRealSquid(t, proxy) })
	t.Run("tampered", func(t *testing.T) { testTamperedSquid(t, proxy) })
}

// testFarSquid: what nginx's log has is what was needed, also when squid is far.
func testFarSquid(t *testing.T, proxy string) {
	files := manyFiles(300)
	p := publish(t, files)
	server, log := nginx(t, p.Dir)
	proxy = "http://" + relay(t, proxy, farDelay)
	settings := func(c *Config) {
		c.Options.URLs = []string{"http://" + server}
		c.Options.Proxies = [][]string{{proxy}}
	}
	if got := readTree(t, p.mount(t, settings)); !maps.Equal(got, hashes(files)) {
		t.Errorf("%d files, or other contents", len(got))
	}
	hits, times := readLog(t, log)
	n, most := objects(hits)
	if n != len(p.Objects) || most != 1 || len(hits) != n+2 {
		t.Errorf("%d objects of %d were asked for, one %d times, in %d requests", n, len(p.Objects), most, len(hits))
	}
	if flying := atOnce(times, 2*farDelay-time.Millisecond); flying < 16 {
		t.Errorf("no more than %d requests were under way at a time", flying)
	}
	if got := readTree(t, p.mount(t, settings)); !maps.Equal(got, hashes(files)) { // another job, warm
		t.Errorf("%d files, or other contents", len(got))
	}
	again, _ := readLog(t, log)
	delete(again, "/"+manifestFile)
	delete(hits, "/"+manifestFile)
	if !maps.Equal(again, hits) {
		t.Error("there was more to ask for than the manifest")
	}
}

// testRealSquid is TestReal with nginx and squid in between.
func testRealSquid(t *testing.T, proxy string) {
	root := shared(t, "data/cvmfs")
	server, _ := nginx(t, root)
	c := realConfig(t, root, "http://"+server)
	c.Options.Proxies = [][]string{{"http://" + proxy}}
	if got := readTree(t, mountConfig(t, c)); !maps.Equal(got, realHashes()) {
		t.Errorf("got %v", got)
	}
}

// testTamperedSquid: squid keeps a damaged object; past its cache is a good one.
func testTamperedSquid(t *testing.T, proxy string) {
	p := publish(t, map[string]cvmfstest.File{"f": {Content: []byte("good")}})
	server, _ := nginx(t, p.Dir)
	set := func(c *Config) {
		c.Options.URLs = []string{"http://" + server}
		c.Options.Proxies = [][]string{{"http://" + proxy}}
	}
	r := p.open(t, set)
	e := lookupFrom(t, r, r.root, "f")
	path := p.Path(e.object.name())
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, len(good)), 0o644); err != nil {
		t.Fatal(err)
	}
	n := &node{repo: r, spot: r.root.below(e), entry: e}
	if b, err := readNode(t.Context(), n); err == nil {
		t.Fatalf("damaged, and read as %q", b)
	}
	if err := os.WriteFile(path, good, 0o644); err != nil {
		t.Fatal(err)
	}
	if b, err := readNode(t.Context(), n); err != nil || string(b) != "good" {
		t.Errorf("got %q, %v", b, err)
	}
}
