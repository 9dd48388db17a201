package generator

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"skeletonkey/generator/job"
)

// runtimeArchs are the architectures for which a job script looks.
func runtimeArchs() []string { return slices.Sorted(maps.Keys(machines)) }

// sumsLimit bounds a SHA256SUMS file, in bytes, and sumsTimeout the time that its server
// may take.
const (
	sumsLimit   = 1 << 20
	sumsTimeout = 30 * time.Second
)

// sumLine is a line of sha256sum(1); * marks binary mode.
var sumLine = regexp.MustCompile(`^([0-9a-fA-F]{64}) [ *](?:\./)?(\S+)$`)

// FindRuntime records in the Job the checksums of the runtime's binaries that lie at its
// location: those of SHA256SUMS below a URL of a web server, and those worked out from the
// files in a directory. It is an error when there is a binary for no architecture.
func FindRuntime(ctx context.Context, r *job.Runtime) error {
	var err error
	if dir := strings.TrimPrefix(r.Location, "file://"); strings.Contains(dir, "://") {
		err = sumsFromWeb(ctx, r)
	} else {
		err = sumsFromDir(r, dir)
	}
	var status *statusError
	if errors.As(err, &status) && !strings.HasSuffix(r.Location, "/dist") {
		err = fmt.Errorf("%w; `skeletonkey serve --dist` has it at /dist", err)
	}
	if err != nil {
		return fmt.Errorf("[Runtime] location %s: %w", r.Location, err)
	}
	if len(r.Sums) == 0 {
		return fmt.Errorf("[Runtime] location %s: no %s there; is it the /dist address of `skeletonkey serve`?",
			r.Location, job.RuntimeFile(runtimeArchs()[0]))
	}
	return nil
}

func sumsFromWeb(ctx context.Context, r *job.Runtime) error {
	ctx, cancel := context.WithTimeout(ctx, sumsTimeout)
	defer cancel()
	sums, err := request(ctx, http.MethodGet, r.Location+"/SHA256SUMS")
	if err != nil {
		return err
	}
	defer sums.Body.Close()
	text, err := io.ReadAll(io.LimitReader(sums.Body, sumsLimit))
	if err != nil {
		return err
	}
	byName := parseSums(text)
	for _, arch := range runtimeArchs() {
		sum, ok := byName[job.RuntimeFile(arch)]
		if !ok {
			continue
		}
		head, err := request(ctx, http.MethodHead, r.Location+"/"+job.RuntimeFile(arch))
		if err != nil {
			return err
		}
		_ = head.Body.Close()
		if head.ContentLength <= 0 {
			return fmt.Errorf("the web server does not say how large %s is", job.RuntimeFile(arch))
		}
		r.AddSum(job.Sum{Arch: arch, SHA256: sum, Size: head.ContentLength})
	}
	return nil
}

func request(ctx context.Context, method, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		_ = res.Body.Close()
		return nil, &statusError{method, url, res.Status}
	}
	return res, nil
}

// statusError is an answer of a web server that is no success.
type statusError struct{ method, url, status string }

func (e *statusError) Error() string { return fmt.Sprintf("%s %s: %s", e.method, e.url, e.status) }

// parseSums reads the lines of sha256sum(1) and passes over all others.
func parseSums(text []byte) map[string]string {
	sums := make(map[string]string)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if m := sumLine.FindStringSubmatch(strings.TrimSpace(lines.Text())); m != nil {
			sums[m[2]] = strings.ToLower(m[1])
		}
	}
	return sums
}

func sumsFromDir(r *job.Runtime, dir string) error {
	for _, arch := range runtimeArchs() {
		f, err := os.Open(filepath.Join(dir, job.RuntimeFile(arch)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		sum := sha256.New()
		size, err := io.Copy(sum, f)
		_ = f.Close()
		if err != nil {
			return err
		}
		r.AddSum(job.Sum{Arch: arch, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size})
	}
	return nil
}
