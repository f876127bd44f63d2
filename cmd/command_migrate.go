package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/config"
)

func newMigrateCommand(c *common) *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use:   "migrate FILE",
		Short: "Rewrite a configuration of MCP Toolbox in the current form",
		Long: `Print FILE with a document for each source, tool, toolset and auth service:
nested maps become documents, plural kinds singular ones. Comments and variables
are kept, the layout is not. A file that is in the current form stays as it is.

With --write FILE itself is rewritten, and what it held is kept as FILE.bak.`,
		Example: `  rolecall migrate tools.yaml > new.yaml
  rolecall migrate tools.yaml --write`,
		Args: exactly(1, "one file"),
		RunE: func(_ *cobra.Command, args []string) error { return migrateFunc(c, args[0], write) },
	}
	cmd.Flags().BoolVar(&write, "write", false, "rewrite FILE, and keep what it held as FILE.bak")
	return cmd
}

func migrateFunc(c *common, path string, write bool) error {
	data, err := os.ReadFile(path)
	if info, also := os.Stat(path); also == nil && info.IsDir() {
		return usageError{fmt.Errorf("migrate %s: it is a directory; migrate takes one file: call it for each, as %s", path, filepath.Join(path, "tools.yaml"))}
	}
	if err != nil {
		return usageError{fmt.Errorf("migrate %s: %w", path, err)}
	}
	out, err := config.Migrate(data)
	if list, ok := errors.AsType[config.Errors](err); ok {
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
		_, err = fmt.Fprintf(c.err, "%s is in the current form\n", clean(path))
		return err
	}
	backup, err := rewrite(path, data, out)
	if err != nil {
		return fmt.Errorf("migrate %s: %w", path, err)
	}
	_, err = fmt.Fprintf(c.err, "%s is rewritten; what it held is in %s\n", clean(path), clean(backup))
	return err
}

// rewrite replaces what a file holds, in one step, and keeps its mode. What it
// held is in the backup. One that fails leaves nothing beside it.
func rewrite(path string, old, data []byte) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	fresh, backup := path+".new", path+".bak"
	if err := create(fresh, data, info.Mode()); err != nil {
		return "", err
	}
	if err := create(backup, old, info.Mode()); err != nil {
		return "", errors.Join(err, os.Remove(fresh))
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", errors.Join(err, os.Remove(fresh), os.Remove(backup))
	}
	return backup, nil
}

// create writes a file that is not there, with a mode, to the disk.
func create(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; move it away", path)
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
