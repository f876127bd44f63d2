package cmd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/org"
)

// parseWorkspace returns the directory of a flag DIR[:ro] as an absolute path.
func parseWorkspace(text string) (dir string, readOnly bool, err error) {
	dir, readOnly = strings.CutSuffix(text, ":ro")
	if dir, err = filepath.Abs(dir); err != nil {
		return "", false, usageError{err}
	}
	if !isDirectory(dir) {
		return "", false, usageError{fmt.Errorf("--workspace %s is not a readable directory", dir)}
	}
	return dir, readOnly, nil
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// setDefaultWorkspace sets the default workspace of a process from its flag; "" sets none.
func setDefaultWorkspace(o *app.Options, text string) (err error) {
	if text != "" {
		o.Workspace, o.WorkspaceReadOnly, err = parseWorkspace(text)
	}
	return err
}

// setTaskWorkspace sets the workspace of a task from its flag: a directory, or else the name
// of a configured workspace. remote reports whether a gateway runs the task: it accepts names
// only.
func setTaskWorkspace(spec *org.TaskSpec, text string, remote bool) (err error) {
	if text == "" {
		return nil
	}
	name, readOnly := strings.CutSuffix(text, ":ro")
	if !strings.ContainsAny(name, `/\`) && name != "" && (remote || !isDirectory(name)) {
		spec.WorkspaceName, spec.ReadOnly = name, readOnly
		return nil
	}
	spec.Workspace, spec.ReadOnly, err = parseWorkspace(text)
	return err
}
