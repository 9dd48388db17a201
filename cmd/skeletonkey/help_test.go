package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"skeletonkey/generator/job"
)

func commands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		list = append(list, commands(sub)...)
	}
	return list
}

func TestEveryCommandTeaches(t *testing.T) {
	root := new(app).command()
	for _, c := range commands(root) {
		if c == root || c.Name() == "completion" || c.Name() == "help" || c.HasParent() && c.Parent().Name() == "completion" {
			continue
		}
		if c.Short == "" || c.Runnable() && !strings.Contains(c.Example, "  ") {
			t.Errorf("%s has no summary or no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Long + "\n" + c.Example) {
			if len(strings.TrimRight(line, "\n")) > 110 {
				t.Errorf("%s: help line is too long: %s", c.CommandPath(), line)
			}
		}
	}
}

func TestReadmeNamesEveryCommand(t *testing.T) {
	text := readmeText(t)
	for _, c := range new(app).command().Commands() {
		if !strings.Contains(text, c.Name()) {
			t.Errorf("README.md does not name %s", c.Name())
		}
	}
}

func readmeText(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeJobIsGood checks the job of the first page as generate would.
func TestReadmeJobIsGood(t *testing.T) {
	_, rest, _ := strings.Cut(readmeText(t), "    [Server]")
	ini, _, ok := strings.Cut("    [Server]"+rest, "\nMake the script")
	if !ok {
		t.Fatal("README.md has no job file")
	}
	j, err := job.Parse("job.ini", []byte(strings.ReplaceAll(ini, "\n    ", "\n")), job.Defaults{})
	if err != nil || len(j.Dirs) != 2 || j.Application.Script != "climate/climate.sh" {
		t.Errorf("%+v, %v", j, err)
	}
}

// TestReadmeListsTheExitCodes holds the table against the constants.
func TestReadmeListsTheExitCodes(t *testing.T) {
	text := readmeText(t)
	for code, again := range map[string]bool{"64": false, "65": false, "69": true, "70": false, "71": true, "73": true, "74": true, "75": true, "77": false} {
		_, row, ok := strings.Cut(text, "\n| "+code+" | ")
		row, _, _ = strings.Cut(row, "\n")
		if retry := !strings.HasSuffix(row, "no |") && !strings.Contains(row, "| no:"); !ok || retry != again {
			t.Errorf("code %s: row %q, another try %v", code, row, again)
		}
	}
	for code, want := range map[int]bool{job.ExitUnreachable: true, job.ExitTicket: false, job.ExitNotWritten: true, job.ExitUsage: false} {
		if job.Retryable(code) != want {
			t.Errorf("code %d: retryable %v", code, !want)
		}
	}
}
