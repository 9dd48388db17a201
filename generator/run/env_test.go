package run

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"skeletonkey/generator/job"
)

// TestApplicationEnvironment: what the application sees, and what outweighs what.
func TestApplicationEnvironment(t *testing.T) {
	s := &scratch{dir: "/s"}
	for name, c := range map[string]struct {
		env           environment
		job           job.Job
		mount, x509   string
		want, wantNot []string
	}{
		"plain": {
			environment{"A=1", "PWD=/x", "OLDPWD=/y", "CHIRP_MOUNT=/old", "SKELETONKEY_SERVER=old:1"}, job.Job{}, "", "",
			[]string{"A=1", "PWD=/s/work", "SKELETONKEY_SCRATCH=/s/work"}, []string{"OLDPWD", "CHIRP_MOUNT", "SKELETONKEY_SERVER", "http_proxy", "X509_USER_PROXY"},
		},
		"data": {
			environment{"CHIRP_MOUNT=/old"}, job.Job{Server: "h:1", Environment: map[string]string{"CHIRP_MOUNT": "/job"}}, "/chirp/h:1", "/s/x509up",
			[]string{"CHIRP_MOUNT=/chirp/h:1", "SKELETONKEY_SERVER=h:1", "X509_USER_PROXY=/s/x509up"}, nil,
		},
		"job file": {
			environment{"A=1", "B=2"}, job.Job{Environment: map[string]string{"A": "", "C": "%Y $HOME\n"}}, "", "",
			[]string{"A=", "B=2", "C=%Y $HOME\n"}, nil,
		},
		"site's web proxy": {
			environment{"OSG_SQUID_LOCATION=squid:3128", "http_proxy=http://own:1"}, job.Job{HTTPProxy: "http://ini:1"}, "", "",
			[]string{"http_proxy=http://squid:3128", "HTTP_PROXY=http://squid:3128"}, nil,
		},
		"job file's web proxy": {
			environment{"OSG_SQUID_LOCATION=UNAVAILABLE", "http_proxy=http://own:1"}, job.Job{HTTPProxy: "http://ini:1"}, "", "",
			[]string{"http_proxy=http://ini:1", "HTTP_PROXY=http://ini:1"}, nil,
		},
		"own web proxy": {
			environment{"HTTP_PROXY=http://own:1"}, job.Job{}, "", "",
			[]string{"http_proxy=http://own:1", "HTTP_PROXY=http://own:1"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.env.application(&c.job, s, c.mount, c.x509)
			all := "\x00" + strings.Join(got, "\x00") + "\x00"
			for _, v := range c.want {
				if strings.Count(all, "\x00"+v+"\x00") != 1 {
					t.Errorf("no %q in %q", v, got)
				}
			}
			for _, v := range c.wantNot {
				if strings.Contains(all, "\x00"+v+"=") {
					t.Errorf("%s in %q", v, got)
				}
			}
			seen := map[string]bool{}
			for _, v := range got {
				n, _, _ := strings.Cut(v, "=")
				if seen[n] {
					t.Errorf("%s twice in %q", n, got)
				}
				seen[n] = true
			}
		})
	}
}

// TestProxiesFor: order of the proxies, and no_proxy.
func TestProxiesFor(t *testing.T) {
	withAll := environment{"OSG_SQUID_LOCATION=squid:3128", "http_proxy=own:1", "https_proxy=http://secure:2"}
	for name, c := range map[string]struct {
		env  environment
		ini  string
		url  string
		want []string
	}{
		"none":          {nil, "", "http://h/a", []string{""}},
		"all":           {withAll, "http://ini:1", "http://h/a", []string{"http://squid:3128", "http://ini:1", "http://own:1", ""}},
		"https":         {withAll, "http://ini:1", "https://h/a", []string{"http://squid:3128", "http://ini:1", "http://secure:2", ""}},
		"no_proxy":      {append(withAll, "no_proxy=x,.example.org"), "http://ini:1", "http://h.example.org/a", []string{""}},
		"NO_PROXY":      {environment{"NO_PROXY=h", "HTTP_PROXY=own:1"}, "", "http://h/a", []string{""}},
		"port":          {append(withAll, "no_proxy=h:81"), "", "http://h:81/a", []string{""}},
		"other port":    {environment{"no_proxy=h:81", "http_proxy=own:1"}, "", "http://h/a", []string{"http://own:1", ""}},
		"network":       {append(withAll, "no_proxy=10.0.0.0/8"), "", "http://10.1.2.3/a", []string{""}},
		"other domain":  {environment{"no_proxy=example.org", "http_proxy=own:1"}, "", "http://badexample.org/a", []string{"http://own:1", ""}},
		"everything":    {append(withAll, "no_proxy=*"), "", "http://h/a", []string{""}},
		"upper case":    {environment{"HTTP_PROXY=own:1"}, "", "http://h/a", []string{"http://own:1", ""}},
		"this machine":  {withAll, "", "http://127.0.0.1:8000/a", []string{""}},
		"the same":      {environment{"http_proxy=http://ini:1"}, "http://ini:1", "http://h/a", []string{"http://ini:1", ""}},
		"unavailable":   {environment{"OSG_SQUID_LOCATION=UNAVAILABLE"}, "", "http://h/a", []string{""}},
		"not a URL":     {withAll, "", "http://[h/a", []string{""}},
		"not a network": {withAll, "", "/a/b", []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.env.proxiesFor(c.url, &job.Job{HTTPProxy: c.ini})
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
