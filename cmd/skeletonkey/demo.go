package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"skeletonkey/examples/climate"
	"skeletonkey/generator/job"
)

// stopTime is how long the demo's job may take to end when the demo is told to.
const stopTime = 30 * time.Second

func (a *app) demoCommand() *cobra.Command {
	var data string
	cmd := &cobra.Command{
		Use: "demo", Short: "Do the whole main job on this machine, and show it", Args: cobra.NoArgs,
		Long: `Demo does on loopback what you would do between your machine and a cluster: it
exports a directory with temperature records, makes a job script from a job file,
runs the script as a node would, and prints the table that the job wrote into the
export. Only the results stay; the last line says where.

The records are made up unless you give a directory of your own: files *.csv with
the header Source,Year,Mean and lines such as gcag,1850-01,-0.6746.`,
		Example: `  skeletonkey demo
  skeletonkey demo --data ~/global-temp`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), data) },
	}
	cmd.Flags().StringVar(&data, "data", "", "a `directory` of records to use")
	return cmd
}

// demo is one run: the directories that it works in.
type demo struct {
	*app
	work   string // removed in the end
	export string // below work; what is served
	keep   string // the results, which stay
	steps  int    // told so far
}

const demoSteps = 5

// step tells a person what comes now.
func (d *demo) step(format string, args ...any) {
	d.steps++
	if !d.quiet {
		_, _ = fmt.Fprintf(d.err, "[%d/%d] %s\n", d.steps, demoSteps, fmt.Sprintf(format, args...))
	}
}

func (a *app) demo(ctx context.Context, data string) (err error) {
	work, err := os.MkdirTemp("", "skeletonkey-demo-")
	if err != nil {
		return err
	}
	d := &demo{app: a, work: work, export: filepath.Join(work, "export")}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := d.prepare(ctx, data); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	chirp, web, err := d.serve(serving, served)
	if err == nil {
		err = d.runJob(ctx, chirp, web)
	}
	stop()
	if err := errors.Join(err, <-served); err != nil {
		return err
	}
	return d.show()
}

// prepare makes the export, with records, and what is published.
func (d *demo) prepare(ctx context.Context, data string) error {
	records, published := filepath.Join(d.export, climate.Records), filepath.Join(d.work, "published")
	for _, dir := range []string{records, filepath.Join(d.export, climate.Results), published} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	tarball, err := climate.Tarball()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(published, climate.Archive), tarball, 0o644); err != nil {
		return err
	}
	if data == "" {
		d.step("Making up records of temperature in %s", records)
		return d.makeRecords(ctx, records)
	}
	d.step("Taking the records in %s", data)
	return copyRecords(data, records)
}

func (d *demo) makeRecords(ctx context.Context, records string) error {
	script, err := fs.ReadFile(climate.Files(), "make-records.sh")
	if err != nil {
		return err
	}
	file := filepath.Join(d.work, "make-records.sh")
	if err := os.WriteFile(file, script, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "sh", file, records)
	cmd.Stderr = d.err
	return cmd.Run()
}

// copyRecords copies the records beside the results: the demo serves one directory.
func copyRecords(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.csv"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return usageError{fmt.Errorf("--data %s: there are no files *.csv", from)}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// serve starts the server and returns its addresses when it listens. Its end is
// told on served.
func (d *demo) serve(ctx context.Context, served chan<- error) (chirp, web string, err error) {
	type addresses struct{ chirp, web net.Addr }
	ready := make(chan addresses, 1)
	quiet := *d.app
	quiet.log = d.quietLog(d.verbose)
	go func() { // ends with ctx; its owner waits on served
		err := quiet.serve(ctx, serveOptions{
			root: d.export, listen: "127.0.0.1:0", dist: "127.0.0.1:0", publish: filepath.Join(d.work, "published"),
			state: filepath.Join(d.work, "state"), auth: "unix,ticket", challengeDir: d.work,
			ready: func(chirp, web net.Addr) { ready <- addresses{chirp, web} },
		})
		close(ready)
		served <- err
	}()
	at, ok := <-ready
	if !ok {
		return "", "", errors.New("the server could not be started")
	}
	d.step("Serving %s at chirp://%s", d.export, at.chirp)
	return at.chirp.String(), "http://" + at.web.String(), nil
}

// runJob makes the job script and runs it as a node would.
func (d *demo) runJob(ctx context.Context, chirp, web string) error {
	text, err := climate.Job(chirp, web, d.export)
	if err != nil {
		return err
	}
	ini, script := filepath.Join(d.work, "job.ini"), filepath.Join(d.work, "job.sh")
	if err := os.WriteFile(ini, text, 0o600); err != nil {
		return err
	}
	d.step("Turning a job file into one script, with a ticket for just this job")
	j, err := job.Load(ini, job.Defaults{})
	if err != nil {
		return err
	}
	if err := d.placeRuntime(&j.Runtime); err != nil {
		return err
	}
	s := d.servers(connection{challengeDir: d.work, timeout: commandTimeout})
	defer s.close()
	quiet := *d.app
	quiet.quiet = true
	if err := quiet.generate(ctx, s, j, script); err != nil {
		return err
	}
	d.step("Running the script: it brings the runtime, unpacks the application, mounts the data and runs")
	cmd := exec.CommandContext(ctx, "sh", script)
	cmd.Dir = d.work
	cmd.Env = append(os.Environ(), "SKELETONKEY_CACHE="+filepath.Join(d.work, "cache"))
	cmd.Stdout, cmd.Stderr = d.err, d.err
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTime
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 {
		return exitError{exit.ExitCode(), fmt.Errorf("the job ended with exit code %d", exit.ExitCode())}
	}
	return err
}

// placeRuntime puts the runtime where a job script finds it without fetching, on a
// machine that has nothing to fetch with: a node needs one of these programs.
func (d *demo) placeRuntime(r *job.Runtime) error {
	for _, tool := range []string{"curl", "wget", "python3"} {
		if _, err := exec.LookPath(tool); err == nil {
			return nil
		}
	}
	dir := filepath.Join(d.work, "runtime")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer exe.Close()
	copied, err := os.OpenFile(filepath.Join(dir, job.RuntimeFile(runtime.GOARCH)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(copied, exe); err != nil {
		_ = copied.Close()
		return err
	}
	r.Location = dir
	return copied.Close()
}

// show moves the results to where they stay, and prints the table.
func (d *demo) show() (err error) {
	if d.keep, err = os.MkdirTemp("", "skeletonkey-results-"); err != nil {
		return err
	}
	for _, name := range []string{climate.Table, climate.Plot} {
		if err := os.Rename(filepath.Join(d.export, climate.Results, name), filepath.Join(d.keep, name)); err != nil {
			return err
		}
	}
	d.step("The table that the job wrote into the export:")
	table, err := os.Open(filepath.Join(d.keep, climate.Table))
	if err != nil {
		return err
	}
	defer table.Close()
	if _, err := io.Copy(d.out, table); err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.err, "The table is %s, the plot %s\n",
		filepath.Join(d.keep, climate.Table), filepath.Join(d.keep, climate.Plot))
	return err
}
