package run

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"skeletonkey/generator/job"
)

// siteProxy returns the proxy of the site, as OSG has it, "" for none.
func (e environment) siteProxy() string {
	if p := e.get("OSG_SQUID_LOCATION"); p != "UNAVAILABLE" {
		return withScheme(p)
	}
	return ""
}

// webProxy returns the web proxy that counts for the job: the site's, else that of
// the job file, else that of the environment; "" for none.
func (e environment) webProxy(j *job.Job) string {
	for _, p := range []string{e.siteProxy(), j.HTTPProxy, e.get("http_proxy"), e.get("HTTP_PROXY")} {
		if p != "" {
			return p
		}
	}
	return ""
}

// proxiesFor returns the ways to a URL for installer.FetchOptions: each proxy in
// the order of its weight, then none. no_proxy holds for all of them, and what is
// on this machine is never asked for elsewhere.
func (e environment) proxiesFor(location string, j *job.Job) []string {
	u, err := url.Parse(location)
	if err != nil || direct(u, e.first("no_proxy", "NO_PROXY")) {
		return []string{""} // of a bad URL Fetch says what is wrong with it
	}
	own := e.first("http_proxy", "HTTP_PROXY")
	if u.Scheme == "https" {
		own = e.first("https_proxy", "HTTPS_PROXY")
	}
	var list []string
	for _, p := range []string{e.siteProxy(), j.HTTPProxy, withScheme(own)} {
		if p != "" && !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return append(list, "")
}

// direct says whether a URL is on this machine or on a host that noProxy names: a
// list of hosts, domains (with all below them), addresses and networks, each
// perhaps with a port, or *.
func direct(u *url.URL, noProxy string) bool {
	host := strings.ToLower(u.Hostname())
	addr, err := netip.ParseAddr(host)
	if host == "" || host == "localhost" || err == nil && addr.Unmap().IsLoopback() {
		return true
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	for entry := range strings.FieldsFuncSeq(strings.ToLower(noProxy), func(r rune) bool { return r == ',' || r == ' ' }) {
		if net, e := netip.ParsePrefix(entry); e == nil && err == nil && net.Contains(addr.Unmap()) {
			return true
		}
		entry = strings.TrimSuffix(entry, ":"+port)
		entry = strings.TrimPrefix(strings.TrimPrefix(strings.Trim(entry, "[]"), "*"), ".")
		if entry == "" || entry == host || strings.HasSuffix(host, "."+entry) {
			return true
		}
	}
	return false
}

// first returns the value of the first of these variables that has one.
func (e environment) first(names ...string) string {
	for _, name := range names {
		if v := e.get(name); v != "" {
			return v
		}
	}
	return ""
}

// withScheme makes a URL of HOST:PORT.
func withScheme(proxy string) string {
	if proxy == "" || strings.Contains(proxy, "://") {
		return proxy
	}
	return "http://" + proxy
}
