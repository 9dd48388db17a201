package installer

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// route is one way to a server: by a proxy, or directly.
type route struct {
	proxy  func(*http.Request) (*url.URL, error)
	client *http.Client
}

// newRoutes makes the routes of a list of proxies, of the environment if it is
// nil. The caller must close them.
func newRoutes(proxies []string) ([]*route, error) {
	if proxies == nil {
		return []*route{newRoute(http.ProxyFromEnvironment)}, nil
	}
	if len(proxies) == 0 {
		proxies = []string{""}
	}
	var routes []*route
	for _, p := range proxies {
		u, err := parseProxy(p)
		if err != nil {
			return nil, err
		}
		routes = append(routes, newRoute(http.ProxyURL(u)))
	}
	return routes, nil
}

// parseProxy returns nil for no proxy.
func parseProxy(p string) (*url.URL, error) {
	if p == "" || strings.EqualFold(p, "DIRECT") {
		return nil, nil
	}
	raw := p
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("proxy %q is neither a URL nor HOST:PORT nor DIRECT", p)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fmt.Errorf("proxy %q: unknown scheme %q", p, u.Scheme)
}

func newRoute(proxy func(*http.Request) (*url.URL, error)) *route {
	dialer := &net.Dialer{Timeout: 15 * time.Second}
	transport := &http.Transport{
		Proxy:               proxy,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 15 * time.Second,
		ForceAttemptHTTP2:   true,
		DisableCompression:  true,
		MaxIdleConns:        2,
		ReadBufferSize:      64 << 10,
	}
	return &route{proxy, &http.Client{Transport: transport, CheckRedirect: checkRedirect}}
}

// checkRedirect limits redirects and does not leave https again.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return finalError{fmt.Errorf("more than %d redirects", len(via))}
	}
	if req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return finalError{fmt.Errorf("redirected from https to %s", req.URL.Redacted())}
	}
	return nil
}

// name is the proxy that is used for u, "" for none.
func (r *route) name(u *url.URL) string {
	p, err := r.proxy(&http.Request{URL: u})
	if err != nil || p == nil {
		return ""
	}
	return p.Redacted()
}

// close ends the connections that are kept.
func (r *route) close() { r.client.CloseIdleConnections() }
