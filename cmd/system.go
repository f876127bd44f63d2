package cmd

import (
	"fmt"
	"os"
)

// checkUmask rejects a umask that takes this user's own permissions from new files: the
// data directory could not be used again.
func checkUmask() error {
	if mask := umask(); mask&0o700 != 0 {
		return fmt.Errorf("the umask %04o takes your own permissions from new files; set it to 0077 with \"umask 077\" and start rolecall again", mask)
	}
	return nil
}

// tempDir creates a directory for temporary files, which the caller removes.
func tempDir(pattern string) (string, error) {
	dir, err := os.MkdirTemp("", pattern)
	if err != nil {
		return "", fmt.Errorf("create a directory for temporary files in %s: %w; set TMPDIR to a directory that you can write", os.TempDir(), err)
	}
	return dir, nil
}
