package cvmfs

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options are what a job file's repoN_options say. The zero value of a field means
// that nothing was said about it.
type Options struct {
	// URLs are the repository's servers in the order of preference, each
	// http[s]://HOST/cvmfs/NAME. @fqrn@ stands for the repository's name, @org@ for
	// the name up to its first dot.
	URLs []string
	// Proxies are groups of web proxies. Inside a group requests are spread; the
	// next group is used when all of one fail. DIRECT is the way without a proxy.
	Proxies [][]string
	// PubKeys are files that hold public keys (PEM), or directories of *.pub files.
	PubKeys []string
	// QuotaLimit bounds the cache, in megabytes (2^20 bytes); negative is unlimited.
	QuotaLimit int64
	// Timeout bounds the wait for a connection, an answer's beginning, and each
	// silence in an answer, of a proxy; TimeoutDirect the same of a server.
	Timeout, TimeoutDirect time.Duration
	// CacheDir is where the cache is, instead of Config.CacheDir.
	CacheDir string
	// RepoName is what repo_name says; Open refuses it when it is another name.
	RepoName string
	// Ignored lists the options that were understood and have no effect here.
	Ignored []string
}

// ignored are options of libcvmfs and Parrot without effect here: they say how that
// program keeps its logs and its files, or ask for what is always so.
var ignored = []string{
	"alien_cache", "alien_cachedir", "change_to_cache_directory", "force_signing", "lock_directory",
	"log_file", "log_prefix", "log_syslog_level", "logfile", "max_open_files", "mountpoint",
	"nofiles", "quota_threshold", "rebuild_cachedb", "syslog_level", "tracefile", "try_reliable_mount",
}

// refused are options that would make a repository less trustworthy than the job's
// author may think, with the reason.
var refused = map[string]string{
	"allow_unsigned": "unsigned repositories are never mounted",
	"blacklist":      "black-lists are not supported",
	"deep_mount":     "a part of a repository cannot be mounted alone",
}

// ParseOptions reads options as SkeletonKey 0.10 handed them to Parrot: name=value,
// separated by commas or blanks; a backslash takes the special meaning from the
// character after it. Lists inside a value are separated by ; (url, and the groups of
// proxies), | (inside a group) and : (pubkey). The errors say which option is meant.
func ParseOptions(s string) (Options, error) {
	var o Options
	words, err := splitOptions(s)
	if err != nil {
		return o, err
	}
	var fallback [][]string
	for i, w := range words {
		if slices.ContainsFunc(words[:i], func(e option) bool { return e.name == w.name }) {
			return o, fmt.Errorf("CVMFS option %s is given twice", w.name)
		}
		if w.name == "fallback_proxies" {
			fallback, err = parseProxies(w.value)
		} else {
			err = o.set(w)
		}
		if err != nil {
			return o, fmt.Errorf("CVMFS option %s: %w", w.name, err)
		}
	}
	o.fallBack(fallback)
	return o, nil
}

// option is one name=value.
type option struct {
	name, value string
	bare        bool // there was no =
}

// splitOptions takes the text apart.
func splitOptions(s string) ([]option, error) {
	var list []option
	cur := option{bare: true}
	end := func() error {
		if cur.name == "" && !cur.bare {
			return fmt.Errorf("CVMFS options: =%s without a name", cur.value)
		}
		if cur.name != "" {
			list = append(list, cur)
		}
		cur = option{bare: true}
		return nil
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r':
			if err := end(); err != nil {
				return nil, err
			}
			continue
		case c == '\\' && i+1 < len(s):
			i++
			c = s[i]
		case c == '=' && cur.bare:
			cur.bare = false
			continue
		}
		if c < ' ' || c == 0x7f {
			return nil, fmt.Errorf("CVMFS options hold the control character %q", c)
		}
		if cur.bare {
			cur.name += string([]byte{c})
		} else {
			cur.value += string([]byte{c})
		}
	}
	return list, end()
}

// set takes one option in.
func (o *Options) set(w option) (err error) {
	if why, ok := refused[w.name]; ok {
		return fmt.Errorf("refused: %s", why)
	}
	if slices.Contains(ignored, w.name) {
		o.Ignored = append(o.Ignored, w.name)
		return nil
	}
	if !slices.Contains(known, w.name) {
		return fmt.Errorf("unknown; known are %s", strings.Join(known, ", "))
	}
	if w.value == "" && w.name != "proxies" {
		return fmt.Errorf("has no value")
	}
	switch w.name {
	case "url":
		o.URLs, err = parseURLs(w.value)
	case "proxies":
		o.Proxies, err = parseProxies(w.value)
	case "pubkey":
		o.PubKeys = slices.DeleteFunc(strings.Split(w.value, ":"), func(p string) bool { return p == "" })
	case "quota_limit":
		o.QuotaLimit, err = parseQuota(w.value)
	case "timeout":
		o.Timeout, err = parseSeconds(w.value)
	case "timeout_direct":
		o.TimeoutDirect, err = parseSeconds(w.value)
	case "cachedir", "cache_directory":
		if o.CacheDir != "" && o.CacheDir != w.value {
			return fmt.Errorf("contradicts cachedir")
		}
		o.CacheDir = w.value
	case "repo_name":
		o.RepoName = w.value
	}
	return err
}

// known are the options that have an effect.
var known = []string{
	"url", "proxies", "fallback_proxies", "pubkey", "quota_limit", "timeout", "timeout_direct", "cachedir",
	"cache_directory", "repo_name",
}

// fallBack appends proxies of last resort. As in CernVM-FS they take the place of
// DIRECT, of which there is none then.
func (o *Options) fallBack(groups [][]string) {
	if len(groups) == 0 {
		return
	}
	var all [][]string
	for _, g := range slices.Concat(o.Proxies, groups) {
		g = slices.DeleteFunc(slices.Clone(g), func(p string) bool { return p == Direct })
		if len(g) > 0 {
			all = append(all, g)
		}
	}
	o.Proxies = all
}

// Direct is the name of the way without a proxy.
const Direct = "DIRECT"

// parseURLs reads a list of servers.
func parseURLs(s string) ([]string, error) {
	var list []string
	for _, one := range strings.Split(s, ";") {
		if one = strings.TrimRight(one, "/"); one == "" {
			continue
		}
		u, err := url.Parse(one)
		if err != nil {
			return nil, err
		}
		if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("%q is no http://HOST/cvmfs/NAME", one)
		}
		list = append(list, one)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("names no server")
	}
	return list, nil
}

// parseProxies reads groups of proxies. A proxy without a scheme is http://.
func parseProxies(s string) ([][]string, error) {
	var groups [][]string
	for _, group := range strings.Split(s, ";") {
		var list []string
		for _, p := range strings.Split(group, "|") {
			if p == "" {
				continue
			}
			if p != Direct && !strings.Contains(p, "://") {
				p = "http://" + p
			}
			if err := checkProxy(p); err != nil {
				return nil, err
			}
			if !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
		if len(list) > 0 {
			groups = append(groups, list)
		}
	}
	return groups, nil
}

// checkProxy refuses what is no proxy.
func checkProxy(p string) error {
	if p == Direct {
		return nil
	}
	u, err := url.Parse(p)
	if err != nil {
		return err
	}
	if u.Host == "auto" {
		return fmt.Errorf("proxies cannot be found automatically here; name them, or DIRECT")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is no proxy: http://HOST:PORT or DIRECT", p)
	}
	return nil
}

// parseQuota reads a number of megabytes.
func parseQuota(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n > 1<<40 || n < -1 || n == 0 {
		return 0, fmt.Errorf("%q is no number of megabytes (-1 for no limit)", s)
	}
	return n, nil
}

// parseSeconds reads a time of one second to a day.
func parseSeconds(s string) (time.Duration, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 1 || n > 86400 {
		return 0, fmt.Errorf("%q is no number of seconds", s)
	}
	return time.Duration(n) * time.Second, nil
}
