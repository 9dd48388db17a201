package chirpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

// The bounds of a group's look-up.
const (
	groupTimeout  = 10 * time.Second
	maxGroup      = 4 << 20 // bytes of a list
	maxGroups     = 1024    // lists that are kept; all are dropped when there are more
	groupFailures = 30 * time.Second
)

// groups looks up who is in a group. A list that cannot be had, or was had too long
// ago, has no members.
type groups struct {
	base string // without a slash at the end; empty: there are no groups
	keep time.Duration
	log  *slog.Logger
	http http.Client

	asking singleflight.Group
	mu     sync.Mutex // guards cache; not held while a list is fetched
	cache  map[string]groupList
}

type groupList struct {
	members map[string]bool
	until   time.Time
}

func (g *groups) open(c *Config) error {
	if c.GroupURL == "" {
		return nil
	}
	u, err := url.Parse(c.GroupURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("group URL %q is not of the form http://host/path", c.GroupURL)
	}
	g.base, g.keep, g.log = strings.TrimRight(c.GroupURL, "/"), c.GroupCache, c.Log
	g.cache = make(map[string]groupList)
	g.http = http.Client{Timeout: groupTimeout, Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, // a list is asked for every quarter of an hour
	}}
	return nil
}

// member says whether the client is in a group.
func (s *session) member(group string) bool {
	return s.srv.groups.list(s.srv.ctx, group)[s.who]
}

// list is the members of a group, asked for by one caller at a time.
func (g *groups) list(ctx context.Context, name string) map[string]bool {
	if g.base == "" {
		return nil
	}
	g.mu.Lock()
	known, ok := g.cache[name]
	g.mu.Unlock()
	if ok && time.Now().Before(known.until) {
		return known.members
	}
	got, _, _ := g.asking.Do(name, func() (any, error) {
		members, err := g.fetch(ctx, name)
		l := groupList{members, time.Now().Add(g.keep)}
		if err != nil {
			g.log.Warn("a group has no members until it can be looked up", "group", name, "err", err)
			l.until = time.Now().Add(min(g.keep, groupFailures))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.cache) >= maxGroups {
			clear(g.cache)
		}
		g.cache[name] = l
		return members, nil
	})
	return got.(map[string]bool)
}

// fetch asks for a list. The name comes from an ACL, which a client may have written: it
// must not lead out of the base.
func (g *groups) fetch(ctx context.Context, name string) (map[string]bool, error) {
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." {
			return nil, errors.New("the name leads elsewhere")
		}
	}
	where := g.base + (&url.URL{Path: "/" + strings.TrimLeft(name, "/")}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return nil, err
	}
	resp, err := g.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", where, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxGroup+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxGroup {
		return nil, fmt.Errorf("%s has more than %d bytes", where, maxGroup)
	}
	members := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			members[line] = true
		}
	}
	return members, nil
}
