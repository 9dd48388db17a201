package generator

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"skeletonkey/generator/job"
)

// Whom a job trusts is in the job: the key's text comes into it from a file or a web server, and what is
// no key ends it.
func TestBringKeys(t *testing.T) {
	dir := t.TempDir()
	pub := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("for this, its looks")}))
	for name, text := range map[string]string{
		"good.pub": pub, "page.html": "<html>Not found</html>\n", "empty": "", "large": pub + strings.Repeat("#", keyLimit),
		"private.pem": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: []byte("x")})),
	} {
		ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()
	for _, from := range []string{dir, "file://" + dir, server.URL} {
		for name, says := range map[string]string{
			"good.pub": "", "page.html": "no public key in PEM", "empty": "no public key in PEM",
			"large": "larger than 65536 bytes", "private.pem": "no public key in PEM", "missing": "/missing",
		} {
			location := from + "/" + name
			j := &job.Job{CVMFS: []job.Repository{{Name: "without.example.org"}, {Name: "cms.example.org", Key: location}}}
			err := bringKeys(within(t), j)
			switch {
			case says == "":
				if err != nil || j.CVMFS[1].PublicKey != pub || j.CVMFS[0].PublicKey != "" {
					t.Errorf("%s: %v, %+v", location, err, j.CVMFS)
				}
			case err == nil, !strings.Contains(err.Error(), says), !strings.Contains(err.Error(), "cms.example.org, "+location):
				t.Errorf("%s: %v", location, err)
			case j.CVMFS[1].PublicKey != "":
				t.Errorf("%s: it is in the job", location)
			}
		}
	}
	if err := bringKeys(within(t), &job.Job{CVMFS: []job.Repository{{Name: "a.b", Key: "http://127.0.0.1:9/k"}}}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("server away: %v", err)
	}
}
