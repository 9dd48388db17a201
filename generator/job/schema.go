package job

// Key describes one key of a job file. Parsing and checking come from this table and nothing else
// knows the keys.
type Key struct {
	Section  string // as documented; compared without regard to case
	Name     string // as documented; of a Numbered key N is the number, of an AnyName key NAME any name
	Match    Match
	Also     []Alias // older spellings, equally accepted
	Type     string  // what the value is, for people: text, list, arguments, URL, ...
	Required bool
	Default  string // for people; empty: none
	Example  string
	Meaning  string

	raw bool // put gets the value with its quotes
	put func(*builder, item) error
}

// Match says how the names of a Key are recognised.
type Match int

// The ways to recognise a name.
const (
	Fixed    Match = iota // Name itself
	Numbered              // Name with a number from 1 (no leading zeros) in the place of N
	AnyName               // every name, case kept
)

// Alias is an older place of a key.
type Alias struct{ Section, Name string }

// Schema returns every key, in the order in which they are documented. The caller owns the slice.
func Schema() []Key {
	return []Key{
		{Section: "Directories", Name: "export_base", Also: []Alias{{"Directories", "chirp_base"}},
			Type: "absolute path", Default: "EXPORT_DIR of ~/.chirp/chirp_options, else /", Example: "/data",
			Meaning: "path of the exported directory on the server's machine; read and write count from there",
			put:     putExportBase},
		{Section: "Directories", Name: "read", Type: "list of directories", Example: "records, common/maps",
			Meaning: "directories that the application reads", raw: true, put: putRead},
		{Section: "Directories", Name: "write", Type: "list of directories", Example: "results",
			Meaning: "directories that the application reads and writes", raw: true, put: putWrite},
		{Section: "Application", Name: "script", Type: "path", Required: true, Example: "./climate/run.sh",
			Meaning: "what to run: absolute, or below the scratch directory, or a name in PATH", put: putScript},
		{Section: "Application", Name: "location", Type: "URL or path", Example: "https://host/climate.tar.gz",
			Meaning: "archive of the application, unpacked in the scratch directory", put: putLocation},
		{Section: "Application", Name: "sha256", Type: "64 hex digits", Example: exampleSum,
			Meaning: "checksum of the archive; a download that differs is not used", put: putSHA256},
		{Section: "Application", Name: "version", Type: "latest or a version", Example: "latest",
			Meaning: "location is a published directory with a name behind it; the release is found when the job is generated", put: putVersion},
		{Section: "Application", Name: "public_key", Type: "minisign key or path", Example: "/home/me/release.key.pub",
			Meaning: "key that must have signed the published directory", put: putPublicKey},
		{Section: "Application", Name: "arguments", Type: "arguments", Example: "--from 1900 'two words'",
			Meaning: "arguments of the script, split as a POSIX shell does, nothing expanded", raw: true, put: putArguments},
		{Section: "Application", Name: "http_proxy", Type: "URL or HOST:PORT", Example: "http://squid:3128",
			Default: "the node's", Meaning: "web proxy for what the node fetches", put: putHTTPProxy},
		{Section: "Application", Name: "user_proxy", Type: "file or DEFAULT", Example: "DEFAULT",
			Meaning: "X.509 proxy to carry along; DEFAULT is /tmp/x509up_u<uid>", put: putUserProxy},
		{Section: "Runtime", Name: "location", Also: []Alias{{"Parrot", "location"}}, Required: true, Type: "URL or absolute path",
			Example: "http://host:9095/dist", Meaning: "where nodes find skeletonkey-linux-ARCH and SHA256SUMS",
			put: putRuntime},
		{Section: "CVMFS", Name: "repoN", Match: Numbered, Type: "text", Example: "repo.example.org",
			Meaning: "name of the Nth CVMFS repository", put: putRepo},
		{Section: "CVMFS", Name: "repoN_key", Match: Numbered, Type: "URL or path", Example: "http://host/repo.key",
			Meaning: "public key of the Nth repository", put: putRepoKey},
		{Section: "CVMFS", Name: "repoN_options", Match: Numbered, Type: "text", Example: "url=http://host/cvmfs/repo,quota_limit=1000",
			Meaning: "options of the Nth repository", put: putRepoOptions},
		{Section: "Server", Name: "location", Type: "chirp://HOST:PORT or HOST:PORT", Example: "chirp://data.example.org:9094",
			Default: "CHIRP_HOST of ~/.chirp/chirp_options with ~/.chirp/chirp.port", Meaning: "the server of the directories",
			put: putServer},
		{Section: "Ticket", Name: "duration", Type: "duration or seconds", Default: "24h", Example: "36h",
			Meaning: "how long the job may use the directories, from when it is generated", put: putDuration},
		{Section: "Environment", Name: "NAME", Match: AnyName, Type: "text", Example: "OMP_NUM_THREADS = 4",
			Meaning: "variable set for the application", put: putEnv},
	}
}

const exampleSum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
