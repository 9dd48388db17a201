package generator

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"skeletonkey/chirpd/auth"
	"skeletonkey/generator/job"
)

//go:embed templates/job.sh
var jobTemplate string

// machines says under which names `uname -m` knows an architecture of Go's.
var machines = map[string][]string{
	"amd64": {"x86_64", "amd64"},
	"arm64": {"aarch64", "arm64"},
}

// Parts is what a job script is made of.
type Parts struct {
	Job       *job.Job // with its ticket's digest and expiry, and the runtime's location and checksums
	Ticket    []byte   // the ticket file; empty when the job has no directories
	UserProxy []byte   // the X.509 proxy file; empty when the job has none
	Version   string   // of skeletonkey
}

// Script returns the job script. The same Parts give the same bytes.
func Script(p Parts) ([]byte, error) {
	d, err := newScriptData(p)
	if err != nil {
		return nil, fmt.Errorf("job script: %w", err)
	}
	t, err := template.New("job.sh").Funcs(template.FuncMap{"q": quote}).Parse(jobTemplate)
	if err != nil {
		return nil, fmt.Errorf("job script: %w", err)
	}
	var buf bytes.Buffer
	if err := t.Execute(&buf, d); err != nil {
		return nil, fmt.Errorf("job script: %w", err)
	}
	return buf.Bytes(), nil
}

// scriptData is what the template sees.
type scriptData struct {
	Name, Version, Server     string
	Location, Host, HTTPProxy string
	Until                     string // for people
	Deadline                  int64  // last second in which a ticket is worth a try
	Runtimes                  []runtimeCase
	Architectures             string
	Ticket, UserProxy         bool
	JobFD, TicketFD           int
	UserProxyFD               int
	Documents                 []document
	Exit                      exitCodes
}

// runtimeCase is one branch of the choice of architectures.
type runtimeCase struct {
	job.Sum
	Pattern string
}

// document is one here-document on a descriptor of its own.
type document struct {
	FD        int
	Delimiter string
	Body      string // ends in a line feed
}

type exitCodes struct {
	Usage, BadDownload, Unreachable, Internal, NoMount, NoScratch, NotWritten, Temporary, Ticket,
	NotExecutable, NotFound, Signal int
}

func newScriptData(p Parts) (*scriptData, error) {
	j := p.Job
	if err := p.check(); err != nil {
		return nil, err
	}
	host, err := hostOf(j.Runtime.Location)
	if err != nil {
		return nil, err
	}
	d := &scriptData{
		Name: j.Name, Version: p.Version, Server: j.Server,
		Location: j.Runtime.Location, Host: host, HTTPProxy: j.HTTPProxy,
		Until:    time.Unix(j.Ticket.Expires, 0).UTC().Format("2006-01-02 15:04:05 MST"),
		Deadline: j.Ticket.Expires + int64(auth.Leeway/time.Second),
		Ticket:   len(p.Ticket) > 0, UserProxy: len(p.UserProxy) > 0,
		JobFD: job.JobFD, TicketFD: job.TicketFD, UserProxyFD: job.UserProxyFD,
		Exit: exitCodes{job.ExitUsage, job.ExitBadDownload, job.ExitUnreachable, job.ExitInternal, job.ExitNoMount,
			job.ExitNoScratch, job.ExitNotWritten, job.ExitTemporary, job.ExitTicket,
			job.ExitNotExecutable, job.ExitNotFound, job.ExitSignal},
	}
	if err := d.addRuntimes(j.Runtime.Sums); err != nil {
		return nil, err
	}
	return d, d.addDocuments(p)
}

// check refuses parts that do not belong together.
func (p Parts) check() error {
	j := p.Job
	switch {
	case j.Runtime.Location == "":
		return errors.New("it is not known where nodes find skeletonkey; set [Runtime] location")
	case len(j.Runtime.Sums) == 0:
		return fmt.Errorf("no checksums of the runtime at %s", j.Runtime.Location)
	case (len(p.Ticket) > 0) != (j.Ticket.Digest != ""):
		return errors.New("the ticket and the job do not belong together")
	case (len(p.UserProxy) > 0) != (j.UserProxy != ""):
		return errors.New("the X.509 proxy and the job do not belong together")
	case strings.ContainsAny(p.Version, "\r\n"):
		return fmt.Errorf("version %q", p.Version)
	}
	return nil
}

func (d *scriptData) addRuntimes(sums []job.Sum) error {
	var names []string
	for _, s := range sums {
		machine := machines[s.Arch]
		if machine == nil {
			return fmt.Errorf("it is not known what machines of architecture %s are called", s.Arch)
		}
		d.Runtimes = append(d.Runtimes, runtimeCase{s, "Linux-" + strings.Join(machine, " | Linux-")})
		names = append(names, machine[0])
	}
	d.Architectures = strings.Join(names, " and ")
	return nil
}

func (d *scriptData) addDocuments(p Parts) error {
	encoded, err := p.Job.Encode()
	if err != nil {
		return err
	}
	for _, doc := range []struct {
		fd   int
		name string
		body []byte
	}{
		{job.JobFD, "SKELETONKEY_JOB", encoded},
		{job.TicketFD, "SKELETONKEY_TICKET", p.Ticket},
		{job.UserProxyFD, "SKELETONKEY_USER_PROXY", p.UserProxy},
	} {
		if len(doc.body) == 0 {
			continue
		}
		body := string(doc.body)
		if strings.ContainsAny(body, "\x00\r") {
			return fmt.Errorf("what goes on descriptor %d is not plain text", doc.fd)
		}
		if !strings.HasSuffix(body, "\n") {
			body += "\n"
		}
		d.Documents = append(d.Documents, document{doc.fd, delimiter(doc.name, body), body})
	}
	return nil
}

// delimiter makes a here-document's delimiter of name, longer until no line of the body begins with it.
func delimiter(name, body string) string {
	for strings.Contains("\n"+body, "\n"+name) {
		name += "_"
	}
	return name
}

// hostOf returns the host of a URL, with its port if it has one, as no_proxy may name it; of a path none.
func hostOf(location string) (string, error) {
	if !strings.Contains(location, "://") {
		return "", nil
	}
	u, err := url.Parse(location)
	if err != nil {
		return "", err
	}
	return strings.ToLower(u.Host), nil
}

// quote writes s as one word of a POSIX shell.
func quote(s string) (string, error) { return syntax.Quote(s, syntax.LangPOSIX) }
