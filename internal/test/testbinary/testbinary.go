// Package testbinary builds the real program once for the tests of a package.
// Only tests import it.
package testbinary

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// dir is where Main lets the program be built.
var dir string

// Main runs a package's tests and takes the program away after them; TestMain
// calls it and exits with what it gives.
func Main(m *testing.M) (status int) {
	made, err := os.MkdirTemp("", "rolecall-built")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(made)
	dir = made
	return m.Run()
}

// BinaryPath gives the path of the program. Safe for concurrent use, below Main.
var BinaryPath = sync.OnceValues(func() (string, error) {
	path := filepath.Join(dir, "rolecall")
	out, err := exec.Command("go", "build", "-o", path, "github.com/rolecall/rolecall/cmd/rolecall").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})
