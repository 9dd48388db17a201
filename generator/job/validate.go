package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Validate checks everything that can be checked of a Job by itself. A Job may lack its ticket and the
// checksums of the runtime, which are added after parsing.
func (j *Job) Validate() error {
	if j.Version != Version {
		return fmt.Errorf("job: version %d is not understood, only %d", j.Version, Version)
	}
	if !jobName.MatchString(j.Name) {
		return fmt.Errorf("job: name %q", j.Name)
	}
	for _, check := range []func() error{
		j.checkServer, j.checkDirs, j.Application.check, j.checkEnvironment, j.checkProxies,
		j.checkCVMFS, j.Runtime.check, j.Ticket.check,
	} {
		if err := check(); err != nil {
			return fmt.Errorf("job: %w", err)
		}
	}
	return nil
}

// complete checks that nothing is left to be added.
func (j *Job) complete() error {
	switch {
	case len(j.Dirs) > 0 && j.Ticket.Digest == "":
		return errors.New("job: directories without a ticket")
	case len(j.Dirs) == 0 && j.Ticket.Digest != "":
		return errors.New("job: a ticket without directories")
	}
	return nil
}

func (j *Job) checkServer() error {
	if j.Server == "" {
		if len(j.Dirs) > 0 {
			return errors.New("directories without a server")
		}
		return nil
	}
	if s, err := ParseServer(j.Server); err != nil || s != j.Server {
		return fmt.Errorf("server %q is not HOST:PORT", j.Server)
	}
	return nil
}

func (j *Job) checkDirs() error {
	for i, d := range j.Dirs {
		if err := checkDir(d.Path); err != nil {
			return err
		}
		if d.Name == "" || d.Name == "." || d.Name == ".." || strings.Contains(d.Name, "/") || badText(d.Name) != "" {
			return fmt.Errorf("directory %s cannot be linked as %q", d.Path, d.Name)
		}
		for _, other := range j.Dirs[:i] {
			if other.Path == d.Path || other.Name == d.Name {
				return fmt.Errorf("directories %s (linked as %s) and %s (%s) are the same", other.Path, other.Name, d.Path, d.Name)
			}
		}
	}
	return nil
}

func (a *Application) check() error {
	if err := checkScript(a.Script); err != nil {
		return fmt.Errorf("script: %w", err)
	}
	if a.Location == "" && a.SHA256 != "" {
		return errors.New("sha256 without location")
	}
	if err := checkLocation(a.Location); err != nil {
		return fmt.Errorf("location: %w", err)
	}
	for _, arg := range a.Arguments {
		if strings.Contains(arg, "\x00") {
			return fmt.Errorf("argument %q holds a NUL", arg)
		}
	}
	if err := a.checkRelease(); err != nil || a.SHA256 == "" {
		return err
	}
	return checkSum(a.SHA256)
}

func (j *Job) checkEnvironment() error {
	for name, value := range j.Environment {
		if err := checkEnv(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (j *Job) checkProxies() error {
	if j.HTTPProxy != "" {
		if p, err := parseProxy(j.HTTPProxy); err != nil || p != j.HTTPProxy {
			return fmt.Errorf("http_proxy %q is not a URL", j.HTTPProxy)
		}
	}
	if why := badText(j.UserProxy); why != "" {
		return fmt.Errorf("user_proxy %q holds %s", j.UserProxy, why)
	}
	return nil
}

func (j *Job) checkCVMFS() error {
	for _, r := range j.CVMFS {
		if !hostName.MatchString(r.Name) {
			return fmt.Errorf("CVMFS repository %q", r.Name)
		}
		if err := checkLocation(r.Key); err != nil {
			return fmt.Errorf("key of CVMFS repository %s: %w", r.Name, err)
		}
		if why := badText(r.Options); why != "" {
			return fmt.Errorf("options of CVMFS repository %s hold %s", r.Name, why)
		}
	}
	return nil
}

func (r *Runtime) check() error {
	if r.Location != "" {
		if err := checkBase(r.Location); err != nil {
			return fmt.Errorf("runtime: %w", err)
		}
	}
	for i, s := range r.Sums {
		if !archName.MatchString(s.Arch) || s.Size <= 0 {
			return fmt.Errorf("runtime for %q of %d bytes", s.Arch, s.Size)
		}
		if err := checkSum(s.SHA256); err != nil {
			return fmt.Errorf("runtime for %s: %w", s.Arch, err)
		}
		if i > 0 && r.Sums[i-1].Arch >= s.Arch {
			return errors.New("runtime: architectures are not in order")
		}
	}
	return nil
}

// AddSum records the binary for one architecture, in order; one of the same architecture is replaced.
func (r *Runtime) AddSum(s Sum) {
	i, found := slices.BinarySearchFunc(r.Sums, s, func(a, b Sum) int { return strings.Compare(a.Arch, b.Arch) })
	if found {
		r.Sums[i] = s
		return
	}
	r.Sums = slices.Insert(r.Sums, i, s)
}

func (t *Ticket) check() error {
	switch {
	case t.Seconds < 1 || t.Seconds > int64(maxTicket.Seconds()):
		return fmt.Errorf("a ticket for %d seconds", t.Seconds)
	case t.Digest == "" && t.Expires != 0:
		return errors.New("the end of a ticket that is not there")
	case t.Digest != "" && (!hexMD5.MatchString(t.Digest) || t.Expires <= 0):
		return fmt.Errorf("ticket %q that ends at %d", t.Digest, t.Expires)
	}
	return nil
}

func checkSum(sum string) error {
	if !hexSum.MatchString(sum) {
		return fmt.Errorf("%q is not a SHA-256 in 64 hex digits", sum)
	}
	return nil
}
