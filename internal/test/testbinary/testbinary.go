// Package testbinary builds the real program once for the tests of a package.
// Only tests import it.
package testbinary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// dir is where the program is built. RunTests sets it.
var dir string

// RunTests runs a package's tests and removes the program afterwards. TestMain calls
// it and exits with the status it returns.
func RunTests(m *testing.M) (status int) {
	made, err := os.MkdirTemp("", "rolecall-built")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(made)
	dir = made
	return m.Run()
}

// BinaryPath builds the program on the first call and returns its path. It is safe for
// concurrent use while RunTests runs.
var BinaryPath = sync.OnceValues(func() (string, error) {
	// The tests may belong to another module, which does not require all packages
	// that the program needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	path := filepath.Join(dir, "rolecall")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", path, "./cmd/rolecall")
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

const module = "github.com/rolecall/rolecall"
