package cvmfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
)

const (
	// rounds is how often all ways are tried before a request fails.
	rounds = 3
	// maxConns bounds the requests under way, and so the connections. Waiting for a turn
	// must not look like waiting for a server.
	maxConns = 64
	// defaultTimeout and defaultTimeoutDirect are those of CernVM-FS.
	defaultTimeout       = 5 * time.Second
	defaultTimeoutDirect = 10 * time.Second
)

// network fetches what a repository's servers have, by way of its proxies. It is safe
// for concurrent use.
type network struct {
	client         *http.Client
	routes         *routes
	turns          chan struct{} // one for each request under way
	timeout        time.Duration // with a proxy
	timeoutDirect  time.Duration
	log            *slog.Logger
	requests, sent atomic.Int64 // how many were made; bytes that came, for the log
}

// newNetwork makes one; nothing is connected yet.
func newNetwork(servers []string, proxies [][]string, o Options, log *slog.Logger) *network {
	n := &network{
		routes:        newRoutes(servers, proxies),
		turns:         make(chan struct{}, maxConns),
		timeout:       cmp.Or(o.Timeout, defaultTimeout),
		timeoutDirect: cmp.Or(o.TimeoutDirect, defaultTimeoutDirect),
		log:           log,
	}
	dialer := &net.Dialer{Timeout: max(n.timeout, n.timeoutDirect), KeepAlive: 30 * time.Second}
	n.client = &http.Client{
		Transport: &http.Transport{
			Proxy:               proxyOf,
			DialContext:         dialer.DialContext,
			ForceAttemptHTTP2:   true,
			DisableCompression:  true, // what comes must be what was hashed
			MaxIdleConnsPerHost: maxConns,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > 4 {
				return errors.New("more than 4 redirections")
			}
			return nil
		},
	}
	return n
}

// close ends the connections that nobody uses.
func (n *network) close() { n.client.CloseIdleConnections() }

// proxyKey is where a request's context has its proxy.
type proxyKey struct{}

// proxyOf is the Proxy function of the transport: the environment has no say.
func proxyOf(r *http.Request) (*url.URL, error) {
	p, _ := r.Context().Value(proxyKey{}).(*url.URL)
	return p, nil
}

// get fetches path, which is below the repository's URL, and hands the answer's body
// to consume. It goes on with other servers and proxies when one fails, or when
// consume returns a *badData; then the same way is first tried once more with the
// request that no cache be used. Other errors of consume are returned as they are.
// consume may so be called several times, and must begin anew each time.
func (n *network) get(ctx context.Context, path string, consume func(io.Reader) error) error {
	var last error
	delay := backoff.NewExponentialBackOff()
	delay.InitialInterval, delay.MaxInterval = 300*time.Millisecond, 3*time.Second
	for round := range rounds {
		if round > 0 {
			if err := sleep(ctx, delay.NextBackOff()); err != nil {
				return err
			}
		}
		again, err := n.round(ctx, path, consume)
		if err == nil || !again {
			return err
		}
		last = err
	}
	return last
}

// round tries every way once. again tells whether another round could help.
func (n *network) round(ctx context.Context, path string, consume func(io.Reader) error) (again bool, err error) {
	var wrong, missing, unreached error
	failures := make(map[string]int) // of each proxy
	for _, r := range n.routes.order(path) {
		if failures[r.name] >= len(n.routes.servers) {
			continue // the proxy itself failed
		}
		err := n.try(ctx, r, path, false, consume)
		if isBad(err) {
			n.log.Warn("cvmfs: bad data; asking again without caches", "from", r.String(), "path", path, "err", err)
			err = n.try(ctx, r, path, true, consume)
		}
		var fault *fault
		switch {
		case err == nil:
			n.routes.well(r)
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case isBad(err):
			wrong = err.(*badData).err
		case !errors.As(err, &fault):
			return false, err
		case fault.missing:
			missing = err
		default:
			unreached = err
			n.log.Info("cvmfs: trying another way", "failed", r.String(), "path", path, "err", err)
			failures[r.name]++
			if fault.proxy {
				failures[r.name] = len(n.routes.servers)
			} else {
				n.routes.failed(r.server)
			}
			if failures[r.name] >= len(n.routes.servers) {
				n.routes.failed(r.name)
			}
		}
	}
	switch {
	case wrong != nil:
		return false, wrong
	case unreached != nil:
		return true, fmt.Errorf("%w; the last one said: %w", ErrUnreachable, unreached)
	}
	return false, fmt.Errorf("%w; the last one said: %w", ErrMissing, missing)
}

// fault is a request that failed, through no fault of what was to be done with it.
type fault struct {
	err     error
	proxy   bool // the proxy is to blame
	missing bool // the server answers, but does not have it
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// try makes one request.
func (n *network) try(ctx context.Context, r route, path string, fresh bool, consume func(io.Reader) error) error {
	select {
	case n.turns <- struct{}{}:
		defer func() { <-n.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limit := n.timeoutDirect
	if r.proxy != nil {
		limit = n.timeout
		ctx = context.WithValue(ctx, proxyKey{}, r.proxy)
	}
	ctx, watch := newWatchdog(ctx, limit)
	defer watch.stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.server+"/"+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "skeletonkey-cvmfs")
	if fresh {
		req.Header.Set("Cache-Control", "no-cache")
		req.Header.Set("Pragma", "no-cache")
	}
	n.requests.Add(1)
	resp, err := n.client.Do(req)
	if err != nil {
		var op *net.OpError
		dial := errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect")
		return &fault{err: watch.explain(err), proxy: r.proxy != nil && dial}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return answered(r, resp)
	}
	body := &body{r: resp.Body, n: n, watch: watch}
	err = consume(body)
	if body.err != nil && err != nil {
		return &fault{err: watch.explain(body.err)} // the transfer broke off, whatever consume made of it
	}
	return err
}

// answered is the fault behind an answer other than 200.
func answered(r route, resp *http.Response) error {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	f := &fault{err: fmt.Errorf("%s: %s", r, resp.Status)}
	switch resp.StatusCode {
	case http.StatusProxyAuthRequired:
		f.proxy = true
	case http.StatusNotFound, http.StatusGone, http.StatusForbidden, http.StatusUnauthorized:
		f.missing = true
	}
	return f
}

// body is an answer's body. It remembers what broke it off, and is too slow when
// waiting for less than lowSpeed has taken as long as a silence may.
type body struct {
	r     io.Reader
	n     *network
	watch *watchdog
	err   error

	waited time.Duration // for the bytes in got
	got    int
}

// lowSpeed is what a transfer must bring, in bytes per second.
const lowSpeed = 1 << 10

func (b *body) Read(p []byte) (int, error) {
	b.watch.timer.Reset(b.watch.limit - b.waited) // it runs only while we wait for the other end
	begin := time.Now()
	n, err := b.r.Read(p)
	b.watch.timer.Stop()
	b.waited += time.Since(begin)
	b.got += n
	if float64(b.got) >= b.watch.limit.Seconds()*lowSpeed {
		b.waited, b.got = 0, 0
	}
	b.n.sent.Add(int64(n))
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// watchdog cancels a request that has been silent or slow for too long.
type watchdog struct {
	timer  *time.Timer
	limit  time.Duration
	barked atomic.Bool
	cancel context.CancelFunc
}

func newWatchdog(ctx context.Context, limit time.Duration) (context.Context, *watchdog) {
	ctx, cancel := context.WithCancel(ctx)
	w := &watchdog{limit: limit, cancel: cancel}
	w.timer = time.AfterFunc(limit, func() {
		w.barked.Store(true)
		cancel()
	})
	return ctx, w
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel()
}

// explain says what happened when it was the watchdog.
func (w *watchdog) explain(err error) error {
	if w.barked.Load() {
		return fmt.Errorf("less than %d bytes/s came for %s", lowSpeed, w.limit)
	}
	var u *url.Error
	if errors.As(err, &u) {
		return fmt.Errorf("%s: %w", strings.ToLower(u.Op), u.Err)
	}
	return err
}

// sleep waits, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
