package job

import (
	"fmt"
	"strings"
)

// Release returns the published directory and the name of the software that Location means when
// Version is set and the archive is yet to be found: Location is DIRECTORY/NAME then.
func (a *Application) Release() (directory, name string, ok bool) {
	i := strings.LastIndexByte(a.Location, '/')
	if a.Version == "" || i <= 0 || i == len(a.Location)-1 || a.Location[i-1] == '/' {
		return "", "", false
	}
	return a.Location[:i], a.Location[i+1:], true
}

func putVersion(b *builder, it item) error {
	b.job.Application.Version = it.value
	return checkVersion(it.value)
}

func putPublicKey(b *builder, it item) error {
	b.job.Application.PublicKey = it.value
	return checkLocation(it.value)
}

// checkVersion is for what a version can be at all; whoever looks for it knows more.
func checkVersion(v string) error {
	if v == "" || len(v) > 128 || strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.+-") != "" {
		return fmt.Errorf("%q is no version; write latest, or one such as 1.10.0", v)
	}
	return nil
}

// finishVersion checks the keys that go with a version.
func (b *builder) finishVersion(t table) {
	given := func(name string) int { return b.given[t.key("Application", name)] }
	_, _, ok := b.job.Application.Release()
	switch line := given("version"); {
	case line == 0 && given("public_key") > 0:
		b.faults.add(given("public_key"), "\"public_key\" in [Application] without \"version\": there is nothing to check")
	case line > 0 && given("sha256") > 0:
		b.faults.add(line, "\"version\" and \"sha256\" in [Application]: the release's own checksum is used; leave one out")
	case line > 0 && !ok:
		b.faults.add(line, "\"version\" in [Application] needs \"location\" to be the published directory with the software's name behind it, such as http://host/software/climate")
	}
}

// checkRelease is for a Job that was read.
func (a *Application) checkRelease() error {
	if a.Version == "" {
		return nil
	}
	if a.Location == "" {
		return fmt.Errorf("version %s without location", a.Version)
	}
	return checkVersion(a.Version)
}
