package cvmfs

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseOptions(t *testing.T) {
	for in, want := range map[string]Options{
		"": {},
		"url=http://cvmfs.racf.bnl.gov/cvmfs/atlas.cern.ch,pubkey=/etc/cvmfs/keys/cern.ch.pub,quota_limit=1000": {
			URLs: []string{"http://cvmfs.racf.bnl.gov/cvmfs/atlas.cern.ch"}, PubKeys: []string{"/etc/cvmfs/keys/cern.ch.pub"}, QuotaLimit: 1000,
		},
		"url=http://a/cvmfs/r;http://b:8000/cvmfs/r/ proxies=squid1:3128|http://squid2:3128;DIRECT\n\ttimeout=3,timeout_direct=7": {
			URLs:    []string{"http://a/cvmfs/r", "http://b:8000/cvmfs/r"},
			Proxies: [][]string{{"http://squid1:3128", "http://squid2:3128"}, {"DIRECT"}},
			Timeout: 3 * time.Second, TimeoutDirect: 7 * time.Second,
		},
		"proxies=":                                {},
		"proxies=DIRECT;":                         {Proxies: [][]string{{"DIRECT"}}},
		"proxies=a:1|a:1;b:2":                     {Proxies: [][]string{{"http://a:1"}, {"http://b:2"}}},
		"url=https://[::1]:8/@org@":               {URLs: []string{"https://[::1]:8/@org@"}},
		"proxies=p:1;DIRECT fallback_proxies=q:2": {Proxies: [][]string{{"http://p:1"}, {"http://q:2"}}},
		"fallback_proxies=q:2":                    {Proxies: [][]string{{"http://q:2"}}},
		"pubkey=/a.pub:/keys":                     {PubKeys: []string{"/a.pub", "/keys"}},
		`cachedir=/a\,b\ c\\d`:                    {CacheDir: `/a,b c\d`},
		"cache_directory=/x,cachedir=/x":          {CacheDir: "/x"},
		"quota_limit=-1":                          {QuotaLimit: -1},
		"repo_name=a.b":                           {RepoName: "a.b"},
		"force_signing,,syslog_level=2 ,":         {Ignored: []string{"force_signing", "syslog_level"}},
		"alien_cache=/x":                          {Ignored: []string{"alien_cache"}},
	} {
		got, err := ParseOptions(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func TestParseOptionsFaults(t *testing.T) {
	for in, says := range map[string]string{
		"urls=http://a":                  "option urls: unknown; known are url, proxies",
		"url=ftp://a/b":                  "option url",
		"url=http://":                    "is no http://HOST",
		"url=;":                          "names no server",
		"url":                            "has no value",
		"url=http://a/b?x":               "is no http://HOST",
		"url=http://a,url=http://b":      "given twice",
		"quota_limit=many":               "no number of megabytes",
		"quota_limit=0":                  "no number of megabytes",
		"quota_limit=99999999999999":     "no number of megabytes",
		"timeout=0":                      "no number of seconds",
		"timeout_direct=1h":              "no number of seconds",
		"proxies=socks5://a:1":           "is no proxy",
		"proxies=auto;DIRECT":            "cannot be found automatically",
		"proxies=http://a b":             "option b: unknown",
		"allow_unsigned":                 "never mounted",
		"blacklist=/x":                   "not supported",
		"deep_mount=/x":                  "alone",
		"=x":                             "without a name",
		"cachedir=/a cache_directory=/b": "contradicts",
		"url=http://a/\x01":              "control character",
	} {
		if o, err := ParseOptions(in); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: got %+v, %v; want %q", in, o, err, says)
		}
	}
}

// TestConfigFaults: what Open refuses before it asks anybody.
func TestConfigFaults(t *testing.T) {
	p := publish(t, small)
	for says, set := range map[string]func(*Config){
		"is no name of a repository":           func(c *Config) { c.Name = "../x" },
		"no server was named":                  func(c *Config) { c.Options.URLs = nil },
		"repo_name=other contradicts":          func(c *Config) { c.Options.RepoName = "other" },
		"proxies: proxies cannot be found":     func(c *Config) { c.Proxies = "auto" },
		"cache: mkdir /proc/none":              func(c *Config) { c.CacheDir = "/proc/none/x" },
		"no public key was given: name the re": func(c *Config) { c.Keys = nil },
	} {
		if _, err := p.try(t, set); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	if hits := p.web.taken(); len(hits) != 0 {
		t.Errorf("the server was asked: %v", hits)
	}
}
