package generator

import (
	"fmt"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteFile writes a job script with mode 0700, whatever was there before, whole or not at all: under a
// temporary name in the same directory, synced, then renamed. A link in the place of the file is
// replaced, not followed.
func WriteFile(file string, script []byte) error {
	// Not renameio.WriteFile: it keeps the mode of a file that is replaced, and the ticket is a secret.
	f, err := renameio.NewPendingFile(file, renameio.WithTempDir(filepath.Dir(file)), renameio.WithStaticPermissions(0o700))
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer f.Cleanup() //nolint:errcheck // nothing is to be done about it, and nothing after success
	if _, err := f.Write(script); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}
