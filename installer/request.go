package installer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// errStalled is the cause of a transfer's end when no byte came for long.
type errStalled struct{ after time.Duration }

func (e errStalled) Error() string { return fmt.Sprintf("no data for %v", e.after) }

// try makes one request, for what is still missing, and reads the answer.
func (d *downloader) try(ctx context.Context, r *route) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := errStalled{d.opts.Stall}
	watch := time.AfterFunc(d.opts.Stall, func() { cancel(stalled) })
	defer watch.Stop()

	err := d.transfer(ctx, r, watch)
	if err != nil && context.Cause(ctx) == error(stalled) {
		return stalled
	}
	return err
}

func (d *downloader) transfer(ctx context.Context, r *route, watch *time.Timer) error {
	if d.part.size > 0 && d.proof == "" {
		if err := d.restart(); err != nil {
			return err
		}
	}
	resp, err := r.client.Do(d.request(ctx))
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // its text repeats the URL
			err = ue.Err
		}
		return err
	}
	defer resp.Body.Close()
	watch.Reset(d.opts.Stall)
	if err := d.accept(resp, r); err != nil {
		return err
	}
	for {
		more, err := d.part.readFrom(resp.Body)
		watch.Reset(d.opts.Stall)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if d.part.total >= 0 && d.part.size != d.part.total {
		return fmt.Errorf("%d bytes of %d: %w", d.part.size, d.part.total, io.ErrUnexpectedEOF)
	}
	if err := d.part.verify(); err != nil {
		d.proof = "" // nothing of it is worth keeping
		return err
	}
	return nil
}

// request asks for the rest, on the condition that it is of the same content.
func (d *downloader) request(ctx context.Context) *http.Request {
	req := (&http.Request{Method: http.MethodGet, URL: d.src, Host: d.src.Host, Header: http.Header{}}).WithContext(ctx)
	req.Header.Set("User-Agent", "skeletonkey")
	req.Header.Set("Accept-Encoding", "identity")
	if d.fresh {
		req.Header.Set("Cache-Control", "no-cache")
		req.Header.Set("Pragma", "no-cache")
	}
	if d.part.size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.part.size))
		req.Header.Set("If-Range", d.proof)
	}
	return req
}

// accept checks an answer's head and prepares part for its body.
func (d *downloader) accept(resp *http.Response, r *route) error {
	switch {
	case resp.StatusCode == http.StatusPartialContent && d.part.size > 0:
		return d.acceptRest(resp)
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && d.part.size > 0:
		d.proof = "" // the next try begins again
		return fmt.Errorf("the server no longer has what was begun: %s", resp.Status)
	case resp.StatusCode != http.StatusOK:
		return &tryError{
			verdict: verdictOf(resp.StatusCode, r.name(d.src) != ""),
			status:  resp.StatusCode, wait: retryAfter(resp), err: statusError(resp),
		}
	}
	if d.part.size > 0 {
		if err := d.restart(); err != nil {
			return err
		}
	}
	return d.acceptWhole(resp)
}

// acceptWhole prepares for the whole content. Its end must be recognisable: by a
// length, by chunks, or by the checksum.
func (d *downloader) acceptWhole(resp *http.Response) error {
	d.proof, d.part.total = validator(resp), resp.ContentLength
	if resp.ContentLength > d.opts.MaxSize {
		return finalError{d.part.tooLarge()}
	}
	chunked := len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	if resp.ContentLength < 0 && !chunked && d.opts.SHA256 == "" {
		return finalError{errors.New("the server does not tell the length, so that a cut could not be noticed: give a checksum")}
	}
	return nil
}

// acceptRest checks that a partial answer is the rest of what was begun.
func (d *downloader) acceptRest(resp *http.Response) error {
	start, total, ok := parseContentRange(resp.Header.Get("Content-Range"))
	same := d.part.total < 0 || total < 0 || total == d.part.total
	if v := validator(resp); v != "" && v != d.proof {
		same = false
	}
	if !ok || start != d.part.size || !same {
		d.proof = ""
		return fmt.Errorf("the server answered with another part than was asked for (%q)", resp.Header.Get("Content-Range"))
	}
	if total >= 0 {
		d.part.total = total
	}
	d.opts.Log.Info("fetch resumed", "url", sourceName(d.src), "have", d.part.size, "total", d.part.total)
	return nil
}

// parseContentRange reads "bytes 5-9/10"; total is -1 for "*".
func parseContentRange(s string) (start, total int64, ok bool) {
	s, ok = strings.CutPrefix(s, "bytes ")
	span, size, ok2 := strings.Cut(s, "/")
	from, _, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, false
	}
	start, err := strconv.ParseInt(from, 10, 64)
	if err != nil {
		return 0, 0, false
	}
	if size == "*" {
		return start, -1, true
	}
	total, err = strconv.ParseInt(size, 10, 64)
	return start, total, err == nil
}

// validator returns what proves that two answers are of the same bytes: a strong
// ETag, or a modification time well before the answer.
func validator(resp *http.Response) string {
	if tag := resp.Header.Get("ETag"); tag != "" {
		if strings.HasPrefix(tag, `"`) {
			return tag
		}
		return ""
	}
	modified := resp.Header.Get("Last-Modified")
	t, err1 := http.ParseTime(modified)
	now, err2 := http.ParseTime(resp.Header.Get("Date"))
	if err1 != nil || err2 != nil || now.Sub(t) < time.Minute {
		return ""
	}
	return modified
}

// statusError says what a status means for the reader, and the way out.
func statusError(resp *http.Response) error {
	hint := ""
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		hint = ": there is no such file, check the address"
	case http.StatusUnauthorized, http.StatusForbidden:
		hint = ": access is refused"
	case http.StatusProxyAuthRequired:
		hint = ": the proxy wants a name and a password in its URL"
	}
	return errors.New("the answer is " + resp.Status + hint)
}

// retryAfter reads the header of that name, in seconds or as a date.
func retryAfter(resp *http.Response) time.Duration {
	v := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(v); err == nil && n >= 0 {
		return min(time.Duration(n), 1<<20) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(t))
	}
	return 0
}
