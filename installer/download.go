package installer

import (
	"context"
	"crypto/tls"
	"errors"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// verdict says what to do after a failure.
type verdict int

const (
	final     verdict = iota // it will not change
	later                    // the next route, and after all routes a pause
	elsewhere                // the next route, but no further attempt
)

// statusVerdicts is the table of statuses; other 5xx mean later, others final.
var statusVerdicts = map[int]verdict{
	403: elsewhere, // final where no proxy is in the way
	407: elsewhere,
	408: later,
	425: later,
	429: later,
}

func verdictOf(status int, proxied bool) verdict {
	v, known := statusVerdicts[status]
	switch {
	case v == elsewhere && !proxied:
		return final
	case !known && status >= 500:
		return later
	}
	return v
}

// tryError is the outcome of one request.
type tryError struct {
	verdict verdict
	status  int           // 0 if there was no answer
	wait    time.Duration // what the server asked for
	err     error
}

func (e *tryError) Error() string { return e.err.Error() }
func (e *tryError) Unwrap() error { return e.err }

// finalError marks an error that trying again does not mend.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// downloader is one call of Fetch for a URL. proof is the validator of what part
// holds, "" where the server gave none: then nothing can be resumed.
type downloader struct {
	src     *url.URL
	part    *partial
	opts    FetchOptions
	routes  []*route
	at      int  // the route in use; one that worked is kept
	fresh   bool // tell caches on the way not to answer
	proof   string
	attempt int
}

// download tries all routes, and again after a pause, until part is complete and
// verified.
func download(ctx context.Context, src *url.URL, part *partial, opts FetchOptions) (Fetched, error) {
	routes, err := newRoutes(opts.Proxies)
	if err != nil {
		return Fetched{}, err
	}
	d := &downloader{src: src, part: part, opts: opts, routes: routes}
	defer func() {
		for _, r := range routes {
			r.close()
		}
	}()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = opts.Delay, opts.MaxDelay
	for d.attempt = 1; ; d.attempt++ {
		te, proxy := d.round(ctx)
		if te == nil {
			return Fetched{Proxy: proxy, Attempts: d.attempt}, nil
		}
		if te.verdict != later || d.attempt == opts.Attempts {
			return Fetched{}, &FetchError{Proxy: proxy, Status: te.status, Attempts: d.attempt,
				Retryable: te.verdict == later, Err: te.err}
		}
		wait := max(pause.NextBackOff(), min(te.wait, opts.MaxDelay))
		d.opts.Log.Warn("fetch will be tried again", "url", sourceName(src), "after", wait, "have", part.size)
		if err := sleep(ctx, wait); err != nil {
			return Fetched{}, err
		}
	}
}

// round tries each route once. It returns the most hopeful failure and the proxy
// that it came from.
func (d *downloader) round(ctx context.Context) (best *tryError, proxy string) {
	for range d.routes {
		r := d.routes[d.at]
		name := r.name(d.src)
		err := d.try(ctx, r)
		if errors.Is(err, ErrChecksum) && !d.fresh {
			// A cache may have kept an old content, or two may have been joined.
			d.opts.Log.Warn("fetch past caches", "url", sourceName(d.src), "proxy", name, "error", err)
			d.fresh = true
			err = d.try(ctx, r)
		}
		if err == nil {
			return nil, name
		}
		te := asTryError(err)
		d.opts.Log.Warn("fetch failed", "url", sourceName(d.src), "proxy", name, "attempt", d.attempt, "error", err)
		if te.verdict == final || ctx.Err() != nil {
			te.verdict = final
			return te, name
		}
		if best == nil || te.verdict == later {
			best, proxy = te, name
		}
		d.at = (d.at + 1) % len(d.routes)
	}
	return best, proxy
}

func (d *downloader) restart() error {
	d.proof = ""
	return d.part.restart()
}

// asTryError classifies errors other than statuses: ours are final, wrong content
// and certificates may be one proxy's, what the network does may pass.
func asTryError(err error) *tryError {
	var te *tryError
	var we writeError
	var fe finalError
	var cert *tls.CertificateVerificationError
	switch {
	case errors.As(err, &te):
		return te
	case errors.As(err, &we), errors.As(err, &fe):
		return &tryError{verdict: final, err: err}
	case errors.Is(err, ErrChecksum), errors.As(err, &cert):
		return &tryError{verdict: elsewhere, err: err}
	}
	return &tryError{verdict: later, err: err}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
