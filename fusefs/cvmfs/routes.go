package cvmfs

import (
	"cmp"
	"hash/fnv"
	"net/url"
	"slices"
	"sync"
	"time"
)

// restTime is how long what failed is tried last.
const restTime = 2 * time.Minute

// route is one way to an object.
type route struct {
	server string
	proxy  *url.URL // nil for none
	name   string   // of the proxy; Direct for none
}

// String names both.
func (r route) String() string {
	if r.proxy == nil {
		return r.server
	}
	return r.server + " through " + r.proxy.Redacted()
}

// routes know all ways, and which of them failed of late. Safe for concurrent use.
type routes struct {
	servers []string
	groups  [][]route // proxies, without a server

	mu   sync.Mutex
	rest map[string]time.Time // guarded by mu: servers and proxies that failed, and until when they rest
}

// newRoutes knows the ways to servers; proxies were checked by ParseOptions.
func newRoutes(servers []string, proxies [][]string) *routes {
	r := &routes{servers: servers, rest: make(map[string]time.Time)}
	if len(proxies) == 0 {
		proxies = [][]string{{Direct}}
	}
	for _, group := range proxies {
		var list []route
		for _, p := range group {
			way := route{name: p}
			if p != Direct {
				way.proxy, _ = url.Parse(p)
			}
			list = append(list, way)
		}
		r.groups = append(r.groups, list)
	}
	return r
}

// order lists all ways in the order in which they are to be tried for path: groups
// and servers as they were given, the proxies of a group by a hash of path, so that
// each has the same share and sees the same objects again; what rests comes last.
func (r *routes) order(path string) []route {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	resting := func(name string) bool { return now.Before(r.rest[name]) }
	var well, ill []route
	for _, group := range r.groups {
		if len(group) > 1 {
			group = slices.Clone(group)
			slices.SortFunc(group, func(a, b route) int { return cmp.Compare(score(a.name, path), score(b.name, path)) })
		}
		for _, way := range group {
			for _, server := range r.servers {
				w := route{server: server, proxy: way.proxy, name: way.name}
				if resting(w.name) || resting(server) {
					ill = append(ill, w)
				} else {
					well = append(well, w)
				}
			}
		}
	}
	return append(well, ill...)
}

// score is the place of a proxy in the order for path.
func score(name, path string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(path))
	h.Write([]byte{0})
	h.Write([]byte(name))
	x := h.Sum64() // its upper bits hardly depend on the end of the input
	x ^= x >> 32
	return x * 0x9e3779b97f4a7c15
}

// failed lets a proxy or a server rest.
func (r *routes) failed(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest[name] = time.Now().Add(restTime)
}

// well ends the rest of both.
func (r *routes) well(w route) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rest, w.server)
	delete(r.rest, w.name)
}
