// Command skeletonkey lets a job run on a cluster against the data where it lies.
// It is one static binary; `skeletonkey help` lists what it does.
package main

import (
	"os"
	"path/filepath"

	"skeletonkey/generator/run"
)

func main() { os.Exit(mainExit()) }

// mainExit is main with an exit code, so that what is deferred runs.
func mainExit() int {
	if code, ok := run.Hidden(); ok {
		return code
	}
	ctx, stop := untilSignal()
	defer stop()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, stop: stop}
	if filepath.Base(os.Args[0]) == chirpServerName {
		return a.chirpServer(ctx, os.Args)
	}
	return a.execute(ctx, os.Args[1:])
}
