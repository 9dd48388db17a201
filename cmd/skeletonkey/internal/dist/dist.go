// Package dist serves over HTTP what nodes fetch: the program's own binaries with
// their checksums under /dist/, and the files of one directory under /.
//
// A binary is opened and its sum taken once, and what is served afterwards comes
// from that descriptor: replacing the file on disk never makes the sums wrong.
// Nothing outside the published directory is served, whatever its links say, and
// no name that begins with a dot, save those that begin with .cvmfs, by which a
// CVMFS repository is found.
package dist

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
)

// Binary is one of the program's binaries.
type Binary struct {
	Name   string // skeletonkey-linux-ARCH
	Arch   string // as Go names it: amd64, arm64
	SHA256 string // hexadecimal
	Size   int64  // bytes
	file   *os.File
}

// Handler serves /dist/ and the published directory. It is safe for concurrent
// use; its owner closes it after the HTTP server has stopped.
type Handler struct {
	binaries  []Binary
	published *os.Root // nil when nothing is published
	started   time.Time
	mux       *http.ServeMux
	log       *slog.Logger
}

var binaryName = regexp.MustCompile(`^skeletonkey-linux-([a-z0-9]+)$`)

// New opens exe, which is this machine's binary, those of other architectures
// that lie beside it under their distribution names, and the directory publish
// when it is not empty.
func New(exe, publish string, log *slog.Logger) (*Handler, error) {
	h := &Handler{started: time.Now(), mux: http.NewServeMux(), log: log}
	if err := h.open(exe, publish); err != nil {
		h.Close()
		return nil, err
	}
	h.mux.HandleFunc("GET /dist/{name}", h.serveDist)
	if h.published != nil {
		files := http.FileServerFS(h.published.FS())
		h.mux.Handle("GET /", hideDots(files))
	}
	return h, nil
}

func (h *Handler) open(exe, publish string) error {
	if err := h.add(exe, runtime.GOARCH); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Dir(exe))
	if err != nil {
		return err
	}
	for _, e := range entries {
		m := binaryName.FindStringSubmatch(e.Name())
		if m == nil || m[1] == runtime.GOARCH || !e.Type().IsRegular() {
			continue
		}
		if err := h.add(filepath.Join(filepath.Dir(exe), e.Name()), m[1]); err != nil {
			return err
		}
	}
	if publish == "" {
		return nil
	}
	if h.published, err = os.OpenRoot(publish); err != nil {
		return fmt.Errorf("--publish: %w", err)
	}
	return nil
}

func (h *Handler) add(path, arch string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	size, err := io.Copy(sum, f)
	if err != nil {
		_ = f.Close()
		return fmt.Errorf("reading %s: %w", path, err)
	}
	h.binaries = append(h.binaries, Binary{
		Name: "skeletonkey-linux-" + arch, Arch: arch,
		SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size, file: f,
	})
	return nil
}

// Binaries lists what /dist/ serves.
func (h *Handler) Binaries() []Binary { return h.binaries }

// Close closes the files. No request may be under way.
func (h *Handler) Close() {
	for _, b := range h.binaries {
		_ = b.file.Close()
	}
	if h.published != nil {
		_ = h.published.Close()
	}
}

// ServeHTTP serves one request and logs it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.log.Debug("dist request", "method", r.Method, "path", r.URL.Path, "peer", r.RemoteAddr)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	h.mux.ServeHTTP(w, r)
}

func (h *Handler) serveDist(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if name == "SHA256SUMS" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, h.sums()) // a client that went away is its own loss
		return
	}
	for _, b := range h.binaries {
		if b.Name == name {
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("ETag", `"`+b.SHA256+`"`)
			http.ServeContent(w, r, "", h.started, io.NewSectionReader(b.file, 0, b.Size))
			return
		}
	}
	http.NotFound(w, r)
}

// sums is in the form of sha256sum(1).
func (h *Handler) sums() string {
	var b strings.Builder
	for _, bin := range h.binaries {
		fmt.Fprintf(&b, "%s  %s\n", bin.SHA256, bin.Name)
	}
	return b.String()
}

func hideDots(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(strings.ReplaceAll(r.URL.Path, "/.cvmfs", ""), "/.") {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
