package installer

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// proxyServer passes requests on to the server behind, whatever host they name,
// or refuses them with a status.
func proxyServer(t *testing.T, behind string, refuse int) *script {
	return newScript(t, func(w http.ResponseWriter, r *http.Request) {
		if refuse != 0 {
			w.WriteHeader(refuse)
			return
		}
		resp, err := http.Get(behind + r.URL.Path)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.WriteHeader(resp.StatusCode)
		io.Copy(w, resp.Body)
	})
}

// deadAddress is where nobody listens.
func deadAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestProxies(t *testing.T) {
	origin := newScript(t, whole(content, ""))
	missing := newScript(t, status(404))
	good := proxyServer(t, origin.URL, 0)
	lying := proxyServer(t, missing.URL, 0)
	denying := proxyServer(t, "", 403)
	login := proxyServer(t, "", 407)
	broken := proxyServer(t, "", 502)
	stale := proxyServer(t, newScript(t, whole("stale", "")).URL, 0)
	dead := deadAddress(t)
	host := strings.TrimPrefix(good.URL, "http://")
	for _, c := range []struct {
		name    string
		proxies []string
		source  string // default: a name that only the proxies know
		used    string
		text    string // of the error, if there is to be one
	}{
		{name: "URL", proxies: []string{good.URL}, used: good.URL},
		{name: "host and port", proxies: []string{host}, used: good.URL},
		{name: "dead, then good", proxies: []string{dead, good.URL}, used: good.URL},
		{name: "denying, then good", proxies: []string{denying.URL, good.URL}, used: good.URL},
		{name: "wants a login, then good", proxies: []string{login.URL, good.URL}, used: good.URL},
		{name: "broken, then good", proxies: []string{broken.URL, good.URL}, used: good.URL},
		{name: "stale, then good", proxies: []string{stale.URL, good.URL}, used: good.URL},
		{name: "all bad, then direct", proxies: []string{dead, denying.URL, broken.URL, "DIRECT"}, source: origin.URL},
		{name: "direct by an empty name", proxies: []string{""}, source: origin.URL},
		{name: "direct by an empty list", proxies: []string{}, source: origin.URL},
		{name: "a login is wanted", proxies: []string{login.URL}, text: "wants a name and a password"},
		{name: "all dead", proxies: []string{dead}, text: "connection refused"},
		{name: "all denying", proxies: []string{denying.URL, login.URL}, text: "access is refused"},
		{name: "404 is believed", proxies: []string{lying.URL, good.URL}, text: "404"},
		{name: "bad scheme", proxies: []string{"ftp://x"}, text: "unknown scheme"},
		{name: "bad proxy", proxies: []string{"http://"}, text: "HOST:PORT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.source == "" {
				c.source = "http://data.example.invalid/x"
			}
			dest := filepath.Join(t.TempDir(), "file")
			opts := quick()
			opts.Proxies, opts.Attempts, opts.SHA256 = c.proxies, 2, sumOf(content)
			got, err := Fetch(t.Context(), c.source, dest, opts)
			if c.text != "" {
				if err == nil || !strings.Contains(err.Error(), c.text) {
					t.Errorf("error %v", err)
				}
				return
			}
			checkFetched(t, got, err, dest, content)
			if got.Proxy != c.used || got.Attempts != 1 {
				t.Errorf("%+v, want proxy %q", got, c.used)
			}
		})
	}
}

// TestProxyPasswordIsNotShown: not in errors, not in reports.
func TestProxyPasswordIsNotShown(t *testing.T) {
	denying := proxyServer(t, "", 407)
	proxy := strings.Replace(denying.URL, "http://", "http://user:hunter2@", 1)
	opts := quick()
	opts.Proxies = []string{proxy}
	_, err := Fetch(t.Context(), "http://me:hunter2@data.example.invalid/x", filepath.Join(t.TempDir(), "f"), opts)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "through http://user:xxxxx@") {
		t.Errorf("error %v", err)
	}
	if got := denying.got[0].Header.Get("Proxy-Authorization"); got == "" {
		t.Error("the password was not used")
	}
}

// TestProxyEnvironment looks at the environment in processes of their own, as the
// first look is remembered.
func TestProxyEnvironment(t *testing.T) {
	origin := newScript(t, whole(content, ""))
	good := proxyServer(t, origin.URL, 0)
	const source = "http://data.example.invalid/x"
	for _, c := range []struct {
		env    []string
		source string
		want   string
	}{
		{[]string{"http_proxy=" + good.URL}, source, good.URL},
		{[]string{"HTTP_PROXY=" + good.URL, "no_proxy=other.invalid"}, source, good.URL},
		{[]string{"https_proxy=" + good.URL}, source, ""},
		{[]string{"HTTPS_PROXY=" + good.URL}, "https://data.example.invalid/x", good.URL},
		{[]string{"http_proxy=" + good.URL, "no_proxy=other.invalid,.example.invalid"}, source, ""},
		{[]string{"http_proxy=" + good.URL, "NO_PROXY=*"}, source, ""},
		{[]string{"http_proxy=" + good.URL}, origin.URL, ""}, // loopback
	} {
		if res := runChild(t, "", childTask{Route: c.source}, c.env...); res.Proxy != c.want {
			t.Errorf("%v: %s through %q, want %q", c.env, c.source, res.Proxy, c.want)
		}
	}
	dest := filepath.Join(t.TempDir(), "file")
	res := runChild(t, "", childTask{Fetch: source, To: dest}, "http_proxy="+good.URL)
	if res.Err != "" || res.Proxy != good.URL {
		t.Errorf("%+v", res)
	}
}

func TestRedirects(t *testing.T) {
	request := func(u string) *http.Request {
		p, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{URL: p}
	}
	if err := checkRedirect(request("http://b/"), []*http.Request{request("https://a/")}); err == nil {
		t.Error("left https")
	}
	for _, to := range []string{"http://b/", "https://b/"} {
		if err := checkRedirect(request(to), []*http.Request{request("http://a/")}); err != nil {
			t.Error(err)
		}
	}
}

// TestUnknownCertificate is no reason to try again.
func TestUnknownCertificate(t *testing.T) {
	s := httptest.NewUnstartedServer(whole(content, ""))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	_, err := Fetch(t.Context(), s.URL, filepath.Join(t.TempDir(), "f"), quick())
	var fe *FetchError
	if !errors.As(err, &fe) || fe.Retryable || fe.Attempts != 1 || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v", err)
	}
}

// TestSquidAndNginx goes through a real proxy to a real server, with a resumed
// transfer.
func TestSquidAndNginx(t *testing.T) {
	needPeer(t, "nginx", "squid")
	dir := publicDir(t)
	writeFile(t, dir+"/www/file", content)
	web, proxy := deadAddress(t), deadAddress(t)
	writeFile(t, dir+"/nginx.conf", `daemon off; pid `+dir+`/nginx.pid; error_log stderr; worker_processes 1; events {}
http { access_log off; client_body_temp_path `+dir+`/t1; proxy_temp_path `+dir+`/t2; fastcgi_temp_path `+dir+`/t3;
uwsgi_temp_path `+dir+`/t4; scgi_temp_path `+dir+`/t5; server { listen `+web+`; root `+dir+`/www; } }`)
	writeFile(t, dir+"/squid.conf", `http_port `+proxy+`
http_access allow all
cache deny all
access_log none
cache_log `+dir+`/cache.log
pid_filename none
shutdown_lifetime 0 seconds
`)
	if err := os.Chmod(dir, 0o777); err != nil { // squid becomes another user
		t.Fatal(err)
	}
	startPeer(t, web, "nginx", "-c", dir+"/nginx.conf", "-p", dir)
	startPeer(t, proxy, "squid", "-N", "-f", dir+"/squid.conf")
	cutting := newScript(t, cut(content, `"1"`, half), func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+web+"/file", http.StatusFound)
	})
	for _, source := range []string{"http://" + web + "/file", cutting.URL} {
		opts := quick()
		opts.Proxies = []string{proxy}
		dest := filepath.Join(t.TempDir(), "file")
		got, err := Fetch(t.Context(), source, dest, opts)
		checkFetched(t, got, err, dest, content)
		if got.Proxy != "http://"+proxy {
			t.Errorf("%+v", got)
		}
	}
	opts := quick()
	opts.Proxies = []string{proxy}
	_, err := Fetch(t.Context(), "http://"+web+"/missing", filepath.Join(t.TempDir(), "f"), opts)
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v", err)
	}
}

// startPeer runs a server until the test ends, and waits until it listens.
func startPeer(t *testing.T, address, program string, args ...string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s does not listen on %s:\n%s", program, address, out.String())
}
