package job

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// DefaultPort is the port of a Chirp server that is named without one.
const DefaultPort = "9094"

var (
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?\.?$`)
	hexSum   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexMD5   = regexp.MustCompile(`^[0-9a-f]{32}$`)
	jobName  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)
	archName = regexp.MustCompile(`^[a-z0-9]+$`)
)

// ParseServer returns HOST:PORT for chirp://HOST:PORT, HOST:PORT or HOST (then with DefaultPort).
// An IPv6 address stands in brackets when a port follows; the result always has them.
func ParseServer(s string) (string, error) {
	rest := strings.TrimSuffix(s, "/")
	if scheme, after, ok := strings.Cut(rest, "://"); ok {
		if !strings.EqualFold(scheme, "chirp") {
			return "", fmt.Errorf("%q is not a Chirp server; write chirp://HOST:PORT", s)
		}
		rest = after
	}
	host, port, err := splitHostPort(rest)
	if err != nil {
		return "", fmt.Errorf("%q is not HOST:PORT: %w", s, err)
	}
	return net.JoinHostPort(strings.ToLower(host), port), nil
}

func splitHostPort(s string) (host, port string, err error) {
	host, port = s, DefaultPort
	if inner, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if net.ParseIP(host) == nil && strings.Contains(s, ":") {
		if host, port, err = net.SplitHostPort(s); err != nil {
			var addr *net.AddrError
			if errors.As(err, &addr) {
				err = errors.New(addr.Err)
			}
			return "", "", err
		}
	}
	if net.ParseIP(host) == nil && !hostName.MatchString(host) {
		return "", "", fmt.Errorf("no host name %q", host)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("no port %q", port)
	}
	return host, port, nil
}

// parseProxy returns the URL of a web proxy given as URL or HOST:PORT.
func parseProxy(s string) (string, error) {
	if !strings.Contains(s, "://") {
		s = "http://" + s
	}
	s = strings.TrimSuffix(s, "/")
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" ||
		u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%q is not a web proxy; write http://HOST:PORT", s)
	}
	return s, nil
}

// checkLocation accepts an http, https or file URL, or a path.
func checkLocation(s string) error {
	if why := badText(s); why != "" {
		return fmt.Errorf("%q holds %s", s, why)
	}
	scheme, rest, isURL := strings.Cut(s, "://")
	if !isURL {
		return nil
	}
	switch {
	case strings.ContainsAny(s, " \t"):
		return fmt.Errorf("%q holds a blank; write %%20", s)
	case scheme == "file" && strings.HasPrefix(rest, "/") && len(rest) > 1:
		return nil
	case scheme == "file":
		return fmt.Errorf("%q has no absolute path; write file:///PATH", s)
	case scheme != "http" && scheme != "https":
		return fmt.Errorf("%q cannot be fetched: use http://, https://, file:/// or a path", s)
	}
	if u, err := url.Parse(s); err != nil || u.Hostname() == "" {
		return fmt.Errorf("%q is not a URL with a host", s)
	}
	return nil
}

// checkBase is checkLocation for a place that nodes know: a relative path is refused.
func checkBase(s string) error {
	if !strings.Contains(s, "://") && !path.IsAbs(s) {
		return fmt.Errorf("%q is neither a URL nor an absolute path", s)
	}
	return checkLocation(s)
}

// checkScript accepts what the package documentation says of `script`.
func checkScript(s string) error {
	switch {
	case s == "":
		return errors.New("no program to run")
	case badText(s) != "":
		return fmt.Errorf("%q holds %s", s, badText(s))
	case strings.HasSuffix(s, "/"):
		return fmt.Errorf("%q is a directory", s)
	case hasDotDot(s):
		return fmt.Errorf("%q leads upwards; paths count from the scratch directory", s)
	}
	return nil
}

// checkDir accepts a clean absolute path of the export that no name of the server's own is part of.
func checkDir(p string) error {
	switch {
	case badText(p) != "":
		return fmt.Errorf("%q holds %s", p, badText(p))
	case !path.IsAbs(p) || path.Clean(p) != p:
		return fmt.Errorf("%q is not a clean absolute path", p)
	case strings.Contains(p, "/.__"):
		return fmt.Errorf("%q: names that begin with .__ belong to the server", p)
	}
	return nil
}

// checkEnv accepts a variable that a job file may set.
func checkEnv(name, value string) error {
	switch {
	case !envName.MatchString(name):
		return fmt.Errorf("%q cannot be the name of a variable: letters, digits and _ only", name)
	case name == "CHIRP_MOUNT" || strings.HasPrefix(name, "SKELETONKEY_"):
		return fmt.Errorf("%s is set by SkeletonKey itself", name)
	case strings.Contains(value, "\x00"):
		return fmt.Errorf("the value of %s holds a NUL", name)
	}
	return nil
}

// parseDuration reads a Go duration (36h, 90m) or plain seconds; the result is whole seconds, at least one.
func parseDuration(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		if n < 1 || n > int64(maxTicket/time.Second) {
			return 0, fmt.Errorf("%q is not between 1 second and %d days", s, maxTicket/(24*time.Hour))
		}
		return n, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration; write 36h, 90m or seconds", s)
	}
	if d < time.Second || d > maxTicket {
		return 0, fmt.Errorf("%q is not between 1 second and %d days", s, maxTicket/(24*time.Hour))
	}
	return int64(d / time.Second), nil
}

// maxTicket bounds a ticket's life, so that a slip of the keyboard makes none for centuries.
const maxTicket = 3650 * 24 * time.Hour

func hasDotDot(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
