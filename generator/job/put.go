package job

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// The put functions give one key's value to the Job; their errors come without position, which the
// caller adds.

func putExportBase(b *builder, it item) error {
	if !path.IsAbs(it.value) {
		return fmt.Errorf("%q is not an absolute path of the server's machine", it.value)
	}
	if hasDotDot(it.value) {
		return fmt.Errorf("%q: .. is refused", it.value)
	}
	b.base = path.Clean(it.value)
	return nil
}

func putRead(b *builder, it item) error  { b.read = it; return nil }
func putWrite(b *builder, it item) error { b.write = it; return nil }

func putScript(b *builder, it item) error {
	b.job.Application.Script = it.value
	return checkScript(it.value)
}

func putLocation(b *builder, it item) error {
	b.job.Application.Location = it.value
	return checkLocation(it.value)
}

func putSHA256(b *builder, it item) error {
	sum := strings.ToLower(it.value)
	b.job.Application.SHA256 = sum
	return checkSum(sum)
}

func putArguments(b *builder, it item) (err error) {
	b.job.Application.Arguments, err = SplitArguments(it.value)
	return err
}

func putHTTPProxy(b *builder, it item) (err error) {
	b.job.HTTPProxy, err = parseProxy(it.value)
	return err
}

func putUserProxy(b *builder, it item) error {
	b.job.UserProxy = it.value
	if it.value == "DEFAULT" {
		b.job.UserProxy = b.defaults.UserProxy
	}
	if b.job.UserProxy == "" {
		return fmt.Errorf("DEFAULT names no file here; write its path")
	}
	return nil
}

func putRuntime(b *builder, it item) error {
	b.job.Runtime.Location = strings.TrimRight(it.value, "/")
	return checkBase(b.job.Runtime.Location)
}

func putServer(b *builder, it item) (err error) {
	b.job.Server, err = ParseServer(it.value)
	return err
}

func putDuration(b *builder, it item) (err error) {
	b.job.Ticket.Seconds, err = parseDuration(it.value)
	return err
}

func putEnv(b *builder, it item) error {
	if b.job.Environment == nil {
		b.job.Environment = map[string]string{}
	}
	b.job.Environment[it.name] = it.value
	return checkEnv(it.name, it.value)
}

// repo is a CVMFS repository whose keys are still coming in.
type repo struct {
	Repository
	line int // of the first of its keys
}

func (b *builder) repo(it item) *repo {
	r := b.repos[it.n]
	if r == nil {
		r = &repo{line: it.line}
		b.repos[it.n] = r
	}
	return r
}

func putRepo(b *builder, it item) error {
	b.repo(it).Name = it.value
	if !hostName.MatchString(it.value) {
		return fmt.Errorf("%q is no name of a repository", it.value)
	}
	return nil
}

func putRepoKey(b *builder, it item) error {
	b.repo(it).Key = it.value
	return checkLocation(it.value)
}

func putRepoOptions(b *builder, it item) error {
	b.repo(it).Options = it.value
	return nil
}

// finishRepos puts the repositories in the order of their numbers.
func (b *builder) finishRepos() {
	for _, n := range slices.Sorted(maps.Keys(b.repos)) {
		r := b.repos[n]
		if r.Name == "" {
			b.faults.add(r.line, "repo%d in [CVMFS] is missing: which repository is meant?", n)
			continue
		}
		b.job.CVMFS = append(b.job.CVMFS, r.Repository)
	}
}

// finishDirs makes the directories of the two lists, now that the base is known.
func (b *builder) finishDirs() {
	base := b.base
	if base == "" {
		base = b.defaults.ExportBase
	}
	if base == "" {
		base = "/"
	}
	dirs := b.dirs(base, b.read, false)
	for _, w := range b.dirs(base, b.write, true) {
		if i := slices.IndexFunc(dirs, func(d Dir) bool { return d.Path == w.Path }); i >= 0 {
			dirs[i].Write = true
		} else {
			dirs = append(dirs, w)
		}
	}
	if err := nameDirs(dirs, base); err != nil {
		b.faults.add(max(b.read.line, b.write.line), "%v", err)
	}
	b.job.Dirs = dirs
}

// dirs makes the directories of one list.
func (b *builder) dirs(base string, list item, write bool) []Dir {
	var dirs []Dir
	for _, entry := range splitList(list.value) {
		p, err := exportPath(base, entry)
		if err == nil && slices.ContainsFunc(dirs, func(d Dir) bool { return d.Path == p }) {
			err = fmt.Errorf("%q is named twice", entry)
		}
		if err != nil {
			b.faults.add(list.line, "%q in [Directories]: %v", list.name, err)
			continue
		}
		dirs = append(dirs, Dir{Path: p, Write: write})
	}
	return dirs
}

// exportPath returns the path in the export that an entry means: one below base counts from there.
func exportPath(base, entry string) (string, error) {
	if hasDotDot(entry) {
		return "", fmt.Errorf("%q: .. is refused", entry)
	}
	p := path.Clean("/" + entry)
	if rest, below := strings.CutPrefix(p, strings.TrimSuffix(base, "/")); below && path.IsAbs(entry) &&
		(rest == "" || rest[0] == '/') {
		p = path.Clean("/" + rest)
	}
	return p, checkDir(p)
}

// nameDirs gives every directory its link name by the rule of the package documentation.
func nameDirs(dirs []Dir, base string) error {
	count := map[string]int{}
	for _, d := range dirs {
		count[lastName(d.Path, base)]++
	}
	taken := map[string]string{}
	for i := range dirs {
		d := &dirs[i]
		d.Name = lastName(d.Path, base)
		if count[d.Name] > 1 {
			d.Name = strings.ReplaceAll(strings.TrimPrefix(d.Path, "/"), "/", "_")
		}
		if other, ok := taken[d.Name]; ok || d.Name == "" {
			return fmt.Errorf("directories %s and %s of the export would both be linked as %q; leave one out", other, d.Path, d.Name)
		}
		taken[d.Name] = d.Path
	}
	return nil
}

// lastName is the last component of a path; that of the export's root is taken from the base.
func lastName(p, base string) string {
	if p != "/" {
		return path.Base(p)
	}
	if base == "/" {
		return "export"
	}
	return path.Base(base)
}
