package run

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain lets the test binary be what Run starts, and a program that calls Run.
func TestMain(m *testing.M) {
	if code, ok := Hidden(); ok {
		os.Exit(code)
	}
	if file := os.Getenv(helperEnv); file != "" {
		os.Exit(helper(file))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil { // most of them wait most of the time
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if binaryDir != "" {
			_ = os.RemoveAll(binaryDir)
		}
		os.Exit(code)
	}))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}
