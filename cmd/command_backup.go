package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

func newBackupCommand(c *common) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the organization into a file, also while it works",
		Long: `Copy the organization into FILE, as it is at one moment, also while it works:
roles, agents, tasks, journals, mail, artifacts, and the configuration each
task was started with. FILE appears when the copy is checked and on disk; it is
for its owner alone, for it holds every prompt and every answer. One that is
there already is overwritten only with --force.

Not in it: the agents' workspaces and the recordings, which are folders to be
copied with any other tool, and values of the environment, keys for instance.
"rolecall restore FILE" brings it back.`,
		Example: `  rolecall backup before-upgrade.backup
  rolecall backup --force /var/backups/rolecall.backup`,
		Args: exactly(1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return backupFunc(cmd.Context(), c, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite the file")
	return cmd
}

// backupShown is what backup says with --json.
type backupShown struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Seq   uint64 `json:"seq"` // of the last event in it
}

func backupFunc(ctx context.Context, c *common, path string, force bool) error {
	if path == "-" {
		return usageError{errors.New("backup writes a file that it can check, not stdout; name one")}
	}
	if filepath.Base(path) == persist.FileName {
		return fmt.Errorf("%s is what the data file of an organization is called; give the backup another name", path)
	}
	if err := mayWrite(path, force); err != nil {
		return err
	}
	shown, err := writeBackup(ctx, c, path, force)
	switch {
	case err != nil:
		return err
	case c.json:
		return printJSON(c.out, shown)
	}
	_, err = fmt.Fprintf(c.out, "%s: %d bytes, everything up to event %d\n", clean(path), shown.Bytes, shown.Seq)
	return err
}

// mayWrite refuses a target that is in use.
func mayWrite(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file; name another", path)
	case !force:
		return fmt.Errorf("%s is there already; --force overwrites it", path)
	}
	return nil
}

// writeBackup writes beside the target, and gives the copy its name when it is
// checked and on disk.
func writeBackup(ctx context.Context, c *common, path string, force bool) (shown backupShown, err error) {
	part, err := os.CreateTemp(filepath.Dir(path), ".rolecall-backup-*.part") // mode 0600
	if err != nil {
		return shown, fmt.Errorf("write a backup beside %s: %w", path, err)
	}
	defer os.Remove(part.Name()) // there is none after the rename
	err = backupTo(ctx, c, part)
	if err := errors.Join(err, part.Sync(), part.Close()); err != nil {
		return shown, err
	}
	shown, err = checked(ctx, part.Name(), path)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return shown, fmt.Errorf("check the copy, which is thrown away: %w; the organization itself holds it: keep your older backups, and copy the data file while nobody works", err)
	case err != nil:
		return shown, fmt.Errorf("check the copy, which is thrown away: %w", err)
	}
	if err := mayWrite(path, force); err != nil { // somebody may have been faster
		return shown, err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return shown, err
	}
	return shown, persist.SyncFolder(filepath.Dir(path))
}

// checked checks a copy that is to become the file at path.
func checked(ctx context.Context, copied, path string) (backupShown, error) {
	info, err := os.Stat(copied)
	if err != nil {
		return backupShown{}, err
	}
	seq, err := persist.Verify(ctx, copied)
	return backupShown{File: path, Bytes: info.Size(), Seq: seq}, err
}

// backupTo copies through the process that serves the data directory, or else
// from the file.
func backupTo(ctx context.Context, c *common, to io.Writer) error {
	for try := 1; ; try++ {
		api, err := newClient(c)
		if err == nil {
			return errors.Join(fetchCopy(ctx, api, to), api.Close())
		}
		if !errors.Is(err, client.ErrNotServed) {
			return err
		}
		err = copyStore(ctx, c.data, to)
		if errcode.Of(err) != errcode.Conflict || try == maxTries { // a process came or went
			return err
		}
	}
}

func fetchCopy(ctx context.Context, api *client.Client, to io.Writer) error {
	from, err := api.Backup(ctx)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err != nil {
		err = fmt.Errorf("the copy broke off after %d bytes: %w", n, err)
	}
	return errors.Join(err, from.Close())
}

func copyStore(ctx context.Context, dir string, to io.Writer) error {
	known, err := hasData(dir)
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("there is no organization in %s; --data DIR names another place", dir)
	}
	store, err := persist.Open(dir)
	if err != nil {
		return err
	}
	_, err = store.Backup(ctx, to)
	return errors.Join(err, store.Close())
}
