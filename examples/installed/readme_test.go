package installed

import (
	"os"
	"path/filepath"
	"testing"

	"skeletonkey/examples/internal/readmetest"
)

func TestReadme(t *testing.T) {
	p := readmetest.New(t)
	p.Run("Step by step")
	for _, version := range []string{"1.9.0", "1.10.0"} {
		if _, err := os.Stat(filepath.Join(p.Home, "installed/opt/wordcount", version, "count.sh")); err != nil {
			t.Error(err)
		}
	}
}
