package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// gocache implements gocache PROJECT DIR, which fills DIR with a build cache of Go that
// knows the standard library as the tests of PROJECT need it. Without it they compile that
// for half a minute.
func gocache(ts *testscript.TestScript, neg bool, args []string) {
	project, to := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	buildCache.Lock()
	defer buildCache.Unlock()
	from, err := warmCache(project)
	ts.Check(err)
	ts.Check(os.CopyFS(to, os.DirFS(from)))
}

// buildCache serializes the making of the cache that the tests of this user share.
var buildCache sync.Mutex

// warmCache returns the shared cache, which is made with the first use of a Go version.
func warmCache(project string) (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(user, "rolecall-test", "go-build-"+goruntime.Version())
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	made, err := os.MkdirTemp(mkdir(filepath.Dir(dir)), "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	for _, verb := range []string{"build", "vet", "test"} {
		cmd := exec.Command("go", verb, "./...")
		cmd.Dir = project
		cmd.Env = append(slices.Clone(os.Environ()), "GOCACHE="+made, "CGO_ENABLED=0", "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("go %s: %w\n%s", verb, err, out)
		}
	}
	if err := os.Rename(made, dir); err != nil && !isDir(dir) { // another process may have been first
		return "", err
	}
	return dir, nil
}

// mkdir makes a directory and returns it; its use fails if that was not possible.
func mkdir(dir string) string {
	_ = os.MkdirAll(dir, 0o700)
	return dir
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
