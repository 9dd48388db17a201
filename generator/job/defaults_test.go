package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUserDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		options, port string
		want          Defaults
	}{
		"none":       {"", "", Defaults{}},
		"installed":  {"EXPORT_DIR=\"/mnt/my data\"\nCCTOOLS_BINDIR=/opt/cctools\nCHIRP_HOST=Login.example.org\n", "9101\n", Defaults{Server: "login.example.org:9101", ExportBase: "/mnt/my data"}},
		"hdfs":       {"HDFS_URI=\"hdfs://n/x\"\nexport CHIRP_HOST='h'\n", " 1 ", Defaults{Server: "h:1"}},
		"no port":    {"CHIRP_HOST=h\nEXPORT_DIR=/x/\n", "", Defaults{ExportBase: "/x"}},
		"odd export": {"EXPORT_DIR=data\n# CHIRP_HOST=x\n", "1", Defaults{}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range map[string]string{"chirp_options": c.options, "chirp.port": c.port} {
				if text == "" {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := UserDefaults(dir, 1000)
			if err != nil {
				t.Fatal(err)
			}
			c.want.UserProxy = "/tmp/x509up_u1000"
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestUserDefaultsBadPort(t *testing.T) {
	dir := t.TempDir()
	for file, text := range map[string]string{"chirp_options": "CHIRP_HOST=h\n", "chirp.port": "none"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if d, err := UserDefaults(dir, 0); err == nil {
		t.Errorf("got %+v", d)
	}
}

func TestParseServer(t *testing.T) {
	for in, want := range map[string]string{
		"h:1": "h:1", "chirp://H.Example:9094/": "h.example:9094", "h": "h:9094", "[::1]:5": "[::1]:5", "::1": "[::1]:9094",
		"chirp://[fe80::1]": "[fe80::1]:9094", "127.0.0.1:80": "127.0.0.1:80", "CHIRP://a_b": "a_b:9094",
	} {
		if got, err := ParseServer(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", ":1", "h:", "h:0", "h:x", "h:70000", "a b:1", "http://h:1", "h:1/x", "[::1", "-h:1", "u@h:1", "h:+1"} {
		if got, err := ParseServer(in); err == nil {
			t.Errorf("%q: accepted as %q", in, got)
		}
	}
}

func TestRetryable(t *testing.T) {
	for code, want := range map[int]bool{0: false, 1: false, 64: false, 65: false, 69: true, 70: false, 71: true,
		73: true, 74: true, 75: true, 77: false, 126: false, 127: false, 143: false} {
		if Retryable(code) != want {
			t.Errorf("Retryable(%d) = %v", code, !want)
		}
	}
}

// The table is what people read: nothing may be missing in it, and every example must be accepted.
func TestSchemaExamples(t *testing.T) {
	for _, k := range Schema() {
		if k.Type == "" || k.Example == "" || k.Meaning == "" || k.put == nil {
			t.Errorf("[%s] %s lacks something", k.Section, k.Name)
		}
		b := &builder{repos: map[int]*repo{}}
		it := item{name: k.Name, n: 1, value: k.Example, line: 1}
		if k.Match == AnyName {
			it.name, it.value = "OMP_NUM_THREADS", "4"
		}
		if err := k.put(b, it); err != nil && k.Example != "DEFAULT" {
			t.Errorf("[%s] %s: example %q: %v", k.Section, k.Name, k.Example, err)
		}
	}
}
