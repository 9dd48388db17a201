package cvmfs

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// clientEnv makes this program a client in a process of its own: it opens the
// repository of the Config in there, reads all of it, and prints how many files there
// were and a hash of everything.
const clientEnv = "CVMFS_TEST_CLIENT"

func TestMain(m *testing.M) {
	if text := os.Getenv(clientEnv); text != "" {
		os.Exit(client(text))
	}
	goleak.VerifyTestMain(m)
}

func client(text string) int {
	var c Config
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	c.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	r, err := Open(context.Background(), c)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	files, err := readAll(context.Background(), r, 8)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	fmt.Printf("%d %s\n", len(files), digestOf(files))
	if err := r.Close(); err != nil {
		return 3
	}
	return 0
}
