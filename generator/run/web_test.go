package run

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProxies is case 41, for the application: it comes by the proxies of site, job
// file and environment, in that order, and the application is told of the first.
func TestProxies(t *testing.T) {
	t.Parallel()
	n := newNode(t, script(`echo "$http_proxy $HTTP_PROXY"`))
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "app.invalid" { // who asks us directly
			http.Error(w, r.URL.String(), http.StatusForbidden)
			return
		}
		n.serve(w, r)
	}))
	t.Cleanup(proxy.Close)
	const dead = "http://127.0.0.1:1"
	good, bare := proxy.URL, strings.TrimPrefix(proxy.URL, "http://")
	for _, c := range []struct {
		env   []string
		ini   string
		first string
	}{
		{[]string{"OSG_SQUID_LOCATION=" + bare, "http_proxy=" + dead}, dead, good},
		{[]string{"OSG_SQUID_LOCATION=UNAVAILABLE", "http_proxy=" + dead}, good, good},
		{[]string{"http_proxy=" + good}, "", good},
		{[]string{"HTTP_PROXY=" + good}, "", good},
		{[]string{"OSG_SQUID_LOCATION=" + dead, "http_proxy=" + good}, "", dead},
	} {
		spec := helperSpec{Job: n.job()}
		spec.Job.Application.Location, spec.Job.HTTPProxy = "http://app.invalid/app.tar", c.ini
		n.run(spec, how{env: c.env}).expect(t, 0, c.first+" "+c.first+"\n")
	}
	// Where no_proxy says so the web server itself is asked.
	spec := helperSpec{Job: n.job()}
	spec.Job.Application.Location = "http://localhost:" + n.web.URL[strings.LastIndex(n.web.URL, ":")+1:] + "/app.tar"
	n.run(spec, how{env: []string{"http_proxy=" + good, "no_proxy=localhost"}}).expect(t, 0, good+" "+good+"\n")
}
