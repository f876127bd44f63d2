package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

func newMigrateCommand(c *common) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "migrate FILE",
		Short: "Convert an MCP Toolbox configuration to the current format",
		Long: `Print FILE in the current format, with one document for each source, tool, toolset
and auth service. Nested maps become documents, and plural kinds become singular.
Comments and variables are kept, the layout is not. A file in the current format is
printed unchanged.

With --write, FILE is rewritten and its old content is kept as FILE.bak.`,
		Example: `  rolecall migrate tools.yaml > new.yaml
  rolecall migrate tools.yaml --write`,
		Args: exactArgs(1, "one file"),
		RunE: func(_ *cobra.Command, args []string) error { return runMigrate(c, args[0], write) },
	}
	cmd.Flags().BoolVar(&write, "write", false, "rewrite FILE and keep its old content as FILE.bak")
	return cmd
}

func runMigrate(c *common, path string, write bool) error {
	if err := c.rejectFiles("migrate FILE"); err != nil {
		return err
	}
	if c.json {
		return usageError{errors.New("migrate prints YAML; it has no --json")}
	}
	if toolboxfile.IsPrebuilt(path) {
		return printPrebuilt(c, path, write)
	}
	data, err := os.ReadFile(path)
	if info, also := os.Stat(path); also == nil && info.IsDir() {
		return usageError{fmt.Errorf("migrate %s: it is a directory; name one file, such as %s", path, filepath.Join(path, "tools.yaml"))}
	}
	if err != nil {
		return usageError{err}
	}
	out, err := toolboxfile.MigrateFile(data)
	if list, ok := errors.AsType[yamldoc.Errors](err); ok {
		for _, e := range list {
			e.File = path
		}
		return list
	}
	switch {
	case err != nil:
		return err
	case !write:
		_, err = c.out.Write(out)
		return err
	case bytes.Equal(out, data):
		_, err = fmt.Fprintf(c.err, "%s is already in the current format\n", textutil.Sanitize(path))
		return err
	}
	backup, err := replaceWithBackup(path, data, out)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", path, err)
	}
	_, err = fmt.Fprintf(c.err, "%s is rewritten; its old content is in %s\n", textutil.Sanitize(path), textutil.Sanitize(backup))
	return err
}

// printPrebuilt prints a prebuilt file, which is in the current format.
func printPrebuilt(c *common, path string, write bool) error {
	data, err := toolboxfile.ReadPrebuilt(path)
	switch {
	case err != nil:
		return usageError{err}
	case write:
		return usageError{fmt.Errorf("migrate %s: a prebuilt file cannot be rewritten; print it, and change a copy", path)}
	}
	_, err = c.out.Write(data)
	return err
}

// replaceWithBackup replaces the content of a file in one step and keeps its mode. The old content
// is kept in the backup file. If it fails it leaves no other file behind.
func replaceWithBackup(path string, old, data []byte) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	fresh, backup := path+".new", path+".bak"
	if err := createFile(fresh, data, info.Mode()); err != nil {
		return "", err
	}
	if err := createFile(backup, old, info.Mode()); err != nil {
		return "", errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", errors.Join(err, os.Remove(fresh), os.Remove(backup))
	}
	return backup, nil
}

// createFile creates a file with a mode and syncs it to disk. It returns an error if the
// file exists.
func createFile(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists; move it away", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode.Perm()), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
