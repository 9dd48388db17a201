package client

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"skeletonkey/chirpd/wire"
)

// ParseURL takes apart what names a server, or a path on one:
//
//	host   host:port   ::1   [::1]:9094   host:port/path
//	chirp://host:port/path   /chirp/host:port/path
//
// server is always host:port, an IPv6 address in brackets, with wire.DefaultPort
// where none is given. path is clean, absolute, and "/" where none is given; it is
// taken as it stands, so that `a%20b` and `100%` are names like any other.
func ParseURL(s string) (server, path string, err error) {
	rest, ok := strings.CutPrefix(s, "chirp://")
	if !ok {
		rest, ok = strings.CutPrefix(s, "/chirp/")
	}
	if scheme, _, found := strings.Cut(s, "://"); found && !ok {
		return "", "", fmt.Errorf("%q: scheme %q is not chirp", s, scheme)
	}
	host, path, _ := strings.Cut(rest, "/")
	server, err = parseServer(host)
	if err != nil {
		return "", "", fmt.Errorf("%q: %w; want host, host:port or chirp://host:port/path", s, err)
	}
	return server, wire.CleanPath(path), nil
}

func parseServer(s string) (string, error) {
	host, port := s, strconv.Itoa(wire.DefaultPort)
	switch {
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case strings.HasPrefix(s, "[") || strings.Count(s, ":") == 1:
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", err
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is not a number from 1 to 65535", port)
	}
	if host == "" {
		return "", fmt.Errorf("no host")
	}
	if _, err := netip.ParseAddr(host); err != nil && strings.Contains(host, ":") {
		return "", fmt.Errorf("%q is not an IPv6 address", host)
	}
	if i := strings.IndexFunc(host, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`@[]"<>\`, r) }); i >= 0 {
		return "", fmt.Errorf("host %q holds %q", host, host[i:i+1])
	}
	return net.JoinHostPort(host, port), nil
}
