package job

import "time"

// Version is the version of the JSON form that this package reads and writes.
const Version = 1

// DefaultTicketDuration is how long a ticket lasts when the job file does not say.
const DefaultTicketDuration = 24 * time.Hour

// Job is one job: what to run, on which data, and what the node needs for it.
type Job struct {
	Version     int               `json:"version"`
	Name        string            `json:"name"`                  // for people and logs: letters, digits, . _ -
	Server      string            `json:"server,omitempty"`      // HOST:PORT; empty when no directory is named
	Dirs        []Dir             `json:"dirs,omitempty"`        // in the order of the file, read before write
	Application Application       `json:"application"`           //
	Environment map[string]string `json:"environment,omitempty"` // set for the application, as written
	HTTPProxy   string            `json:"http_proxy,omitempty"`  // URL; of less weight than OSG_SQUID_LOCATION
	UserProxy   string            `json:"user_proxy,omitempty"`  // X.509 proxy file where the job was written; its content travels on UserProxyFD
	CVMFS       []Repository      `json:"cvmfs,omitempty"`       // in the order of their numbers
	Runtime     Runtime           `json:"runtime"`               //
	Ticket      Ticket            `json:"ticket"`                //
}

// Dir is a directory of the export that the application sees.
type Dir struct {
	Path  string `json:"path"`            // in the export: absolute and clean
	Name  string `json:"name"`            // of the link in the scratch directory; unique in a Job
	Write bool   `json:"write,omitempty"` // rights rwld; otherwise rl
}

// Rights returns the Chirp rights that the job needs on the directory.
func (d Dir) Rights() string {
	if d.Write {
		return "rwld"
	}
	return "rl"
}

// Application says what is run. The package documentation says where Script is looked for and from
// where a relative Location counts.
type Application struct {
	Script    string   `json:"script"`
	Location  string   `json:"location,omitempty"`   // archive to unpack: URL or path; empty: none
	SHA256    string   `json:"sha256,omitempty"`     // of the archive, 64 lower-case hex digits; empty: not checked
	Version   string   `json:"version,omitempty"`    // as asked for, see Release; as found, once SHA256 is known
	PublicKey string   `json:"public_key,omitempty"` // that signed the releases: a minisign key, or a file where the job is written
	Arguments []string `json:"arguments,omitempty"`
}

// Repository is one CVMFS repository (repoN of the job file).
type Repository struct {
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`        // URL or path of its public key, where the job was written
	PublicKey string `json:"public_key,omitempty"` // the key itself, PEM; put in when the script is made
	Options   string `json:"options,omitempty"`    // as written: url=..., proxies=...
}

// Runtime says where nodes get this program.
type Runtime struct {
	Location string `json:"location,omitempty"` // base URL, or absolute path, without / at its end
	Sums     []Sum  `json:"sums,omitempty"`     // ordered by Arch
}

// Sum identifies the binary for one architecture.
type Sum struct {
	Arch   string `json:"arch"`   // as Go names it: amd64, arm64
	SHA256 string `json:"sha256"` // 64 lower-case hex digits
	Size   int64  `json:"size"`   // bytes
}

// File returns the name of the binary below Runtime.Location.
func (s Sum) File() string { return RuntimeFile(s.Arch) }

// RuntimeFile returns the name under which the binary for a Go architecture is served.
func RuntimeFile(arch string) string { return "skeletonkey-linux-" + arch }

// Ticket describes the ticket that goes with the job; the ticket itself is carried apart.
type Ticket struct {
	Seconds int64  `json:"seconds"`           // how long it is to last from when it is made
	Digest  string `json:"digest,omitempty"`  // 32 lower-case hex digits; empty: no ticket
	Expires int64  `json:"expires,omitempty"` // seconds since 1970 UTC
}
