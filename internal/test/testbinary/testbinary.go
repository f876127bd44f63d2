// Package testbinary builds the real program, and other commands, once for the tests of a
// package.
// Only tests import it.
package testbinary

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

// dir is where commands are built. RunTests sets it.
var dir string

// RunTests runs a package's tests and removes the commands afterwards. TestMain calls
// it and exits with the status it returns.
func RunTests(m interface{ Run() int }) (status int) {
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
func BinaryPath() (string, error) { return CommandPath(module + "/cmd/rolecall") }

// CommandPath builds the command of a package on the first call with this package, in the
// module that the program belongs to, and returns its path. Packages have different last
// elements. It is safe for concurrent use while RunTests runs.
func CommandPath(pkg string) (string, error) {
	build, _ := builds.LoadOrStore(pkg, sync.OnceValues(func() (string, error) { return buildCommand(pkg) }))
	return build.(func() (string, error))()
}

var builds sync.Map // from a package to a func() (string, error)

func buildCommand(pkg string) (string, error) {
	// The tests may belong to another module, which does not require all packages
	// that the program needs.
	root, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("find the module %s: %w", module, err)
	}
	file := filepath.Join(dir, path.Base(pkg))
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, pkg)
	build.Dir = strings.TrimSpace(string(root))
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return file, nil
}

const module = "github.com/rolecall/rolecall"
