package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// FetchOptions says how to fetch. The zero value is a good default.
type FetchOptions struct {
	// SHA256, if not "", is the checksum that the content must have, as 64
	// hexadecimal digits.
	SHA256 string
	// Proxies are tried in order, the next one when one fails: URLs (http, https,
	// socks5), or HOST:PORT; "" and "DIRECT" mean none, as does an empty list. They
	// count for every host. A nil list follows the environment, as it was when the
	// process first asked for it: http_proxy, https_proxy and no_proxy, or their
	// upper case forms; loopback addresses are then always reached directly.
	Proxies []string
	// Attempts is how many times the whole list of proxies is tried. Default 5.
	Attempts int
	// Delay is the pause before the second attempt; later ones grow up to
	// MaxDelay, as does a server's Retry-After. Defaults 500 ms and 30 s.
	Delay, MaxDelay time.Duration
	// Stall is how long no byte may arrive before the transfer counts as failed.
	// Default 60 s.
	Stall time.Duration
	// MaxSize is the most bytes that are accepted. Default: no limit.
	MaxSize int64
	// Mode is the mode of the new file, masked by the umask. Default 0644.
	Mode fs.FileMode
	// Progress, if not nil, is told how many bytes there are so far and how many
	// there will be, -1 if not known, in the goroutine that called Fetch. The
	// count starts again at 0 when a server cannot resume.
	Progress func(done, total int64)
	// Log receives failed attempts and the ways that are taken. Default: none.
	Log *slog.Logger
}

// Fetched tells what Fetch brought.
type Fetched struct {
	Path     string // the final name
	Size     int64  // bytes
	SHA256   string // of the content, 64 lower case hexadecimal digits
	Proxy    string // by which it came, "" for none; without a password
	Attempts int    // rounds through the list of proxies that were begun
}

// Fetch copies source, an http, https or file URL or a path, to the file dest. It
// writes to a temporary name in dest's directory, which must exist; dest appears,
// or is replaced, by one rename when the content is complete, has the checksum
// and is on the disk. A transfer that was cut is resumed where the server proves
// that it still has the same content, else begun again. The error is a
// *FetchError or, when ctx ends, ctx's; nothing is left then.
func Fetch(ctx context.Context, source, dest string, opts FetchOptions) (Fetched, error) {
	opts = opts.withDefaults()
	src, err := parseSource(source)
	if err != nil {
		return Fetched{}, &FetchError{URL: withoutUser(source), Err: err}
	}
	fail := func(err error) (Fetched, error) { return Fetched{}, fetchError(ctx, src, err) }
	if err := checkDigest(opts.SHA256); err != nil {
		return fail(err)
	}
	part, err := newPartial(dest, opts)
	if err != nil {
		return fail(err)
	}
	defer part.discard()
	var got Fetched
	if src.Scheme == "file" {
		got.Attempts = 1
		err = copyLocal(ctx, src, part)
	} else {
		got, err = download(ctx, src, part, opts)
	}
	if err != nil {
		return fail(err)
	}
	if err := part.publish(dest); err != nil {
		return fail(err)
	}
	got.Path, got.Size, got.SHA256 = dest, part.size, part.digest()
	return got, nil
}

func (o FetchOptions) withDefaults() FetchOptions {
	o.SHA256 = strings.ToLower(o.SHA256)
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	for _, d := range []struct {
		v   *time.Duration
		def time.Duration
	}{{&o.Delay, 500 * time.Millisecond}, {&o.MaxDelay, 30 * time.Second}, {&o.Stall, time.Minute}} {
		if *d.v <= 0 {
			*d.v = d.def
		}
	}
	if o.MaxSize <= 0 {
		o.MaxSize = 1<<63 - 1
	}
	if o.Mode == 0 {
		o.Mode = 0o644
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// parseSource turns a path into a file URL and checks a URL.
func parseSource(source string) (*url.URL, error) {
	scheme, _, isURL := strings.Cut(source, "://")
	if !isURL || strings.ContainsAny(scheme, "/.") {
		if source == "" {
			return nil, errors.New("empty name")
		}
		return &url.URL{Scheme: "file", Path: source}, nil
	}
	u, err := url.Parse(source)
	if err != nil {
		return nil, err.(*url.Error).Err
	}
	switch u.Scheme {
	case "http", "https":
		if u.Host == "" {
			return nil, errors.New("the URL names no host")
		}
		return u, nil
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, errors.New("a file URL cannot name another host")
		}
		return u, nil
	}
	return nil, fmt.Errorf("unknown scheme %q: use http, https, file or a path", u.Scheme)
}

// withoutUser drops name and password from what may be no URL at all.
func withoutUser(source string) string {
	scheme, rest, _ := strings.Cut(source, "://")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		return scheme + "://" + rest[i+1:]
	}
	return source
}

func checkDigest(sum string) error {
	if sum != "" && (len(sum) != 64 || strings.Trim(sum, "0123456789abcdef") != "") {
		return fmt.Errorf("checksum %q is not 64 hexadecimal digits", sum)
	}
	return nil
}

// sourceName is how messages name the source.
func sourceName(u *url.URL) string {
	if u.Scheme == "file" {
		return u.Path
	}
	return u.Redacted()
}

// fetchError makes what Fetch returns of a cause.
func fetchError(ctx context.Context, src *url.URL, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("fetch %s: %w", sourceName(src), cause)
	}
	var fe *FetchError
	if !errors.As(err, &fe) {
		fe = &FetchError{Err: err}
	}
	fe.URL = sourceName(src)
	return fe
}

// copyLocal copies a file of this machine.
func copyLocal(ctx context.Context, src *url.URL, part *partial) error {
	f, err := openRegular(src.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	part.total = st.Size()
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		more, err := part.readFrom(f)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	if part.size != part.total {
		return fmt.Errorf("the file changed while it was read: it was %d bytes long, now %d", part.total, part.size)
	}
	return part.verify()
}

// openPartial makes the temporary file.
func openPartial(dest string) (*os.File, error) {
	if base := filepath.Base(dest); dest == "" || dest[len(dest)-1] == '/' || base == "." || base == ".." {
		return nil, fmt.Errorf("%q is not a name for a file", dest)
	}
	if st, err := os.Stat(dest); err == nil && st.IsDir() {
		return nil, &fs.PathError{Op: "replace", Path: dest, Err: errors.New("is a directory")}
	}
	return os.CreateTemp(filepath.Dir(dest), tempPattern(dest))
}
