package job

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Defaults is what holds where a job file is silent.
type Defaults struct {
	Server     string // HOST:PORT, of [Server] location
	ExportBase string // absolute path, of [Directories] export_base; empty: /
	UserProxy  string // the file that DEFAULT means in [Application] user_proxy
	Runtime    string // URL or absolute path, of [Runtime] location; empty: the key is required
}

// UserDefaults reads what an older installation left about the user's own server in dir (~/.chirp):
// CHIRP_HOST and EXPORT_DIR of chirp_options, and the port in chirp.port. UserProxy is set for uid.
// Files that are not there leave their defaults empty; those that cannot be read or make no sense are
// an error.
func UserDefaults(dir string, uid int) (Defaults, error) {
	d := Defaults{UserProxy: fmt.Sprintf("/tmp/x509up_u%d", uid)}
	options, err := readOptional(filepath.Join(dir, "chirp_options"))
	if err != nil {
		return d, err
	}
	values := assignments(options)
	if base := values["EXPORT_DIR"]; filepath.IsAbs(base) {
		d.ExportBase = filepath.Clean(base)
	}
	host := values["CHIRP_HOST"]
	if host == "" {
		return d, nil
	}
	port, err := readOptional(filepath.Join(dir, "chirp.port"))
	if err != nil || strings.TrimSpace(port) == "" {
		return d, err
	}
	d.Server, err = ParseServer(host + ":" + strings.TrimSpace(port))
	if err != nil {
		return d, fmt.Errorf("%s: %w; name the server in [Server]", dir, err)
	}
	return d, nil
}

// readOptional returns the content of a small file, or nothing when there is none.
func readOptional(name string) (string, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// assignments reads NAME=value lines as a shell script has them, export and quotes taken away.
func assignments(text string) map[string]string {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if name = strings.TrimSpace(strings.TrimPrefix(name, "export ")); ok && envName.MatchString(name) {
			values[name] = unquote(strings.TrimSpace(value))
		}
	}
	return values
}
