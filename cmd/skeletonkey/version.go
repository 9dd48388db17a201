package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release; the linker sets it in released binaries:
// -ldflags "-X main.version=1.2.3".
var version = "dev"

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Example: "  skeletonkey version --json",
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return json.NewEncoder(a.out).Encode(about())
			}
			_, err := fmt.Fprintln(a.out, about())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

// build is what is told of this binary.
type build struct{ Version, Revision, Go, Platform string }

func about() build {
	return build{version, revision(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

func (b build) String() string {
	return fmt.Sprintf("skeletonkey %s %s %s %s", b.Version, b.Revision, b.Go, b.Platform)
}

// revision is the commit that the binary was built from, as Go recorded it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
