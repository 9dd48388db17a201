package generator

import (
	"strings"
	"testing"
)

// dead is a proxy that nothing listens at.
const dead = "127.0.0.1:9"

// Case 41: the proxies of the site, the job file and the environment, in this order, and none at last.
func TestProxies(t *testing.T) {
	live := strings.TrimPrefix(web.URL, "http://")
	for name, c := range map[string]struct {
		env    []string
		ini    string
		direct bool // the runtime can be had without a proxy, and is
		every  bool // what happens may depend on the tool
		code   int
	}{
		"http_proxy":         {env: []string{"http_proxy=http://" + live}, every: true},
		"HTTP_PROXY":         {env: []string{"HTTP_PROXY=http://" + live}, every: true},
		"without scheme":     {env: []string{"http_proxy=" + live}},
		"all_proxy":          {env: []string{"ALL_PROXY=http://" + live}},
		"lower case first":   {env: []string{"http_proxy=http://" + live, "HTTP_PROXY=" + dead}},
		"ini":                {ini: "http://" + live},
		"ini before env":     {ini: "http://" + live, env: []string{"http_proxy=http://" + dead}},
		"site":               {env: []string{"OSG_SQUID_LOCATION=" + live}},
		"site before ini":    {env: []string{"OSG_SQUID_LOCATION=" + live}, ini: "http://" + dead},
		"site is no site":    {env: []string{"OSG_SQUID_LOCATION=UNAVAILABLE"}, ini: "http://" + live},
		"site is dead":       {env: []string{"OSG_SQUID_LOCATION=" + dead}, ini: "http://" + live},
		"ini is dead":        {ini: "http://" + dead, env: []string{"http_proxy=" + live}},
		"all are dead":       {ini: "http://" + dead, env: []string{"http_proxy=" + dead}, direct: true, every: true},
		"proxy refuses":      {env: []string{"http_proxy=http://" + live}, direct: true},
		"none":               {code: 69},
		"for https only":     {env: []string{"https_proxy=http://" + live}, code: 69},
		"no_proxy elsewhere": {env: []string{"http_proxy=http://" + live, "no_proxy=example.com,ehind.example"}},
		"no_proxy host":      {env: []string{"http_proxy=http://" + live, "no_proxy=localhost,behind.example"}, code: 69, every: true},
		"NO_PROXY domain":    {env: []string{"HTTP_PROXY=http://" + live, "NO_PROXY=.example"}, code: 69},
		"no_proxy star":      {env: []string{"OSG_SQUID_LOCATION=" + live, "no_proxy=*"}, code: 69},
	} {
		for _, tool := range []string{"curl", "wget", "wget=busybox", "python3"} {
			if tool != "curl" && !c.every {
				continue
			}
			t.Run(name+" "+tool, func(t *testing.T) {
				t.Parallel()
				n := newNode(t)
				n.only(tool, "sha256sum")
				n.hurry()
				n.setenv(c.env...)
				n.job.HTTPProxy = c.ini
				path := "/good/" + strings.NewReplacer(" ", "-", "=", "-").Replace(name+tool)
				n.job.Runtime.Location = "http://behind.example" + path
				if c.direct {
					n.job.Runtime.Location = web.URL + path
				}
				code, said := n.run()
				if code != c.code {
					t.Errorf("exit code %d: %s", code, said)
				}
				if code == 0 && c.direct != (web.countBelow(path+"/") == 1) {
					t.Errorf("fetched directly: %v", !c.direct)
				}
			})
		}
	}
}

// no_proxy keeps the fetch away from a proxy that would work.
func TestNoProxyAddress(t *testing.T) {
	live := strings.TrimPrefix(web.URL, "http://")
	for _, excluded := range []string{"127.0.0.1", live, " 127.0.0.1 , x", "*"} {
		n := newNode(t)
		path := "/good/excluded" + sumOf(excluded)
		n.job.Runtime.Location = web.URL + path
		n.setenv("http_proxy="+web.URL, "no_proxy="+excluded)
		n.mustRun()
		if web.countBelow("proxy "+web.URL+path+"/") != 0 || web.countBelow(path+"/") != 1 {
			t.Errorf("%q: the proxy was asked", excluded)
		}
	}
}

// The application finds its environment as it was.
func TestEnvironmentIsKept(t *testing.T) {
	eachShell(t, func(t *testing.T, n *node) {
		set := []string{"http_proxy=" + dead, "NO_PROXY=*", "arch=vax", "debug=yes", "url=x", "code=1", "dir=/d", "IFS_=-", "OLD=a\nb", "LC_ALL=C"}
		n.setenv(set...)
		n.mustRun("-d")
		got := n.environment()
		for _, word := range n.env {
			name, value, _ := strings.Cut(word, "=")
			if got[name] != value {
				t.Errorf("%s=%q, want %q", name, got[name], value)
			}
			delete(got, name)
		}
		for _, shellsOwn := range []string{"PWD", "OLDPWD", "SHLVL", "_", "SK_TEST_OUT", "LOGNAME"} {
			delete(got, shellsOwn)
		}
		if len(got) > 0 {
			t.Errorf("added: %v", got)
		}
	})
}

// countBelow returns how many requests came for paths with a prefix; those by proxy are counted under
// "proxy URL".
func (w *fakeWeb) countBelow(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := 0
	for path, n := range w.gets {
		if strings.HasPrefix(path, prefix) {
			sum += n
		}
	}
	return sum
}
