package job

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds a job file, so that a wrong path does not fill the memory.
const maxFile = 1 << 20

// Load reads and parses the job file of that name. A file that is missing or larger than 1 MiB is an
// error; faults in it come back as Errors, all together.
func Load(file string, d Defaults) (*Job, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("job file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("job file %s: larger than %d bytes", file, maxFile)
	}
	return Parse(file, data, d)
}

// Parse reads a job file's content; file is its name, for errors and for the job's own name. The Job
// has no ticket yet and no checksums of the runtime. The error is of type Errors.
func Parse(file string, data []byte, d Defaults) (*Job, error) {
	b := &builder{
		faults:   faults{file: file},
		defaults: d,
		repos:    map[int]*repo{},
		given:    map[*Key]int{},
		job: Job{
			Version: Version,
			Name:    nameOf(file),
			Ticket:  Ticket{Seconds: int64(DefaultTicketDuration.Seconds())},
			Runtime: Runtime{Location: d.Runtime},
		},
	}
	t := table{Schema()}
	headings, entries := scan(data, &b.faults)
	b.checkSections(t, headings)
	b.take(t, entries)
	b.finish(t, headings)
	if err := b.faults.err(); err != nil {
		return nil, err
	}
	if err := b.job.Validate(); err != nil {
		b.faults.add(0, "%v", err)
		return nil, b.faults.err()
	}
	return &b.job, nil
}

// item is one key of the file, recognised.
type item struct {
	name  string // as written
	n     int    // the number in the name of a Numbered key
	value string
	line  int
}

// builder makes a Job of the items of one file.
type builder struct {
	faults   faults
	defaults Defaults
	job      Job
	base     string
	read     item // lists of directories wait for the base, which may stand below them
	write    item
	repos    map[int]*repo
	given    map[*Key]int // line of each key that has a value, right or wrong
}

// checkSections reports the unknown ones.
func (b *builder) checkSections(t table, headings []heading) {
	for _, h := range headings {
		if !t.hasSection(h.name) {
			b.faults.add(h.line, "%s", t.unknownSection(h.name))
		}
	}
}

// take hands every entry to the key it means. Entries of unknown sections are passed over: the
// section's own error says enough.
func (b *builder) take(t table, entries []entry) {
	seen := map[string]item{}
	for _, e := range entries {
		if !t.hasSection(e.section) {
			continue
		}
		key, n := t.find(e)
		if key == nil {
			msg, meant := t.unknownKey(e)
			b.faults.add(e.line, "%s", msg)
			b.given[meant] = e.line
			continue
		}
		it := item{e.key, n, e.value, e.line}
		id := key.id(it)
		if first, twice := seen[id]; twice {
			b.faults.add(e.line, "%q in [%s] was given before, as %q in line %d",
				e.key, t.sectionName(e.section), first.name, first.line)
			continue
		}
		seen[id] = it
		b.put(key, it, t.sectionName(e.section))
	}
}

// put gives the key its value. A blank one counts as none, save where any name may be set.
func (b *builder) put(key *Key, it item, section string) {
	if !key.raw {
		it.value = unquote(it.value)
	}
	if it.value == "" && key.Match != AnyName {
		return
	}
	b.given[key] = it.line
	if err := key.put(b, it); err != nil {
		b.faults.add(it.line, "%q in [%s]: %v", it.name, section, err)
	}
}

// id returns what two entries have in common when they are the same key.
func (k *Key) id(it item) string {
	if k.Match == AnyName {
		return k.Section + "\x00" + it.name
	}
	return fmt.Sprintf("%s\x00%s\x00%d", k.Section, k.Name, it.n)
}

// finish does what needs the whole file: defaults, and keys that depend on one another.
func (b *builder) finish(t table, headings []heading) {
	for i := range t.keys {
		if k := &t.keys[i]; k.Required && b.given[k] == 0 && !b.hasDefault(k) {
			b.faults.add(lineOf(headings, k.Section), "key %q in [%s] is missing: %s", k.Name, k.Section, k.Meaning)
		}
	}
	if line := b.given[t.key("Application", "sha256")]; line > 0 && b.given[t.key("Application", "location")] == 0 {
		b.faults.add(line, "\"sha256\" in [Application] without \"location\": there is nothing to check")
	}
	b.finishVersion(t)
	b.finishRepos()
	b.finishDirs()
	b.finishServer(headings, b.given[t.key("Server", "location")] > 0)
}

// hasDefault reports whether a required key may be left out this time.
func (b *builder) hasDefault(k *Key) bool {
	return k.Section == "Runtime" && b.defaults.Runtime != ""
}

func (b *builder) finishServer(headings []heading, given bool) {
	switch {
	case len(splitList(b.read.value))+len(splitList(b.write.value)) == 0:
		b.job.Server = "" // nothing is mounted
	case given: // right, or reported
	case b.defaults.Server != "":
		b.job.Server = b.defaults.Server
	default:
		b.faults.add(lineOf(headings, "Server"), `key "location" in [Server] is missing, and ~/.chirp names no server`)
	}
}

func lineOf(headings []heading, section string) int {
	for _, h := range headings {
		if strings.EqualFold(h.name, section) {
			return h.line
		}
	}
	return 0
}

// nameOf makes a job's name of its file's: without directory and extension, odd characters replaced.
func nameOf(file string) string {
	base := filepath.Base(file)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '.' || r == '-' || envName.MatchString("x"+string(r))) {
			return r
		}
		return '_'
	}, base)
	name = strings.TrimLeft(name, ".-")
	if name == "" {
		return "job"
	}
	return name
}
