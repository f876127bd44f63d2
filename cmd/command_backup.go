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
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

func newBackupCommand(c *common) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write a consistent backup, online or offline",
		Long: `Write a consistent backup of the organization to FILE, also while it runs. It
contains roles, agents, tasks, journals, messages, artifacts, and the configuration
that each task was started with. FILE appears once the backup is verified and on
disk. It contains every prompt and answer, so only its owner can read it. An
existing file is overwritten only with --force.

A backup does not contain values of environment variables, such as API keys, nor the
folders of workspaces and recordings, which any other tool can copy.
"rolecall restore FILE" restores a backup.`,
		Example: `  rolecall backup before-upgrade.backup
  rolecall backup --force /var/backups/rolecall.backup`,
		Args: exactArgs(1, "the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBackup(cmd.Context(), c, args[0], force)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

// backupOutput is the output of backup with --json.
type backupOutput struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
	Seq   uint64 `json:"seq"` // of the last event in it
}

func runBackup(ctx context.Context, c *common, path string, force bool) error {
	if err := c.rejectFiles("backup"); err != nil {
		return err
	}
	if path == "-" {
		return usageError{errors.New("backup verifies what it has written, so it cannot write to stdout; name a file")}
	}
	if filepath.Base(path) == persist.FileName {
		return fmt.Errorf("%s is the name of an organization's data file; choose another name for the backup", path)
	}
	if base := c.getenv(urlVariable); base != "" {
		return usageError{fmt.Errorf("a backup is never sent over a network, and %s is %s; make it on the machine of the organization, without the variable", urlVariable, base)}
	}
	if err := checkTarget(path, force); err != nil {
		return err
	}
	shown, err := writeBackup(ctx, c, path, force)
	switch {
	case err != nil:
		return err
	case c.json:
		return printJSON(c.out, shown)
	}
	_, err = fmt.Fprintf(c.out, "%s: %d bytes, everything up to event %d\n", textutil.Sanitize(path), shown.Bytes, shown.Seq)
	return err
}

// checkTarget returns an error if path cannot be written, or exists and force is not set.
func checkTarget(path string, force bool) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; name another", path)
	case !force:
		return fmt.Errorf("%s already exists; --force overwrites it", path)
	}
	return nil
}

// writeBackup writes a temporary file next to the target, verifies it, and renames it once
// it is on disk.
func writeBackup(ctx context.Context, c *common, path string, force bool) (shown backupOutput, err error) {
	part, err := persist.CreateDraft(filepath.Dir(path), ".rolecall-backup-*.part")
	if errors.Is(err, fs.ErrNotExist) {
		return shown, usageError{fmt.Errorf("there is no directory %s for the backup", filepath.Dir(path))}
	}
	if err != nil {
		return shown, fmt.Errorf("create a temporary file next to %s: %w", path, err)
	}
	defer part.Close()           // not before the rename: an open draft is not removed by another backup
	defer os.Remove(part.Name()) // fails after the rename, as it should
	err = backupTo(ctx, c, part)
	if err := errors.Join(err, part.Sync()); err != nil {
		return shown, err
	}
	shown, err = verifyCopy(ctx, part.Name(), path)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		return shown, fmt.Errorf("verify the backup, which is discarded: %w; the data file itself is damaged: keep older backups, and copy the data file while no process uses it", err)
	case err != nil:
		return shown, fmt.Errorf("verify the backup, which is discarded: %w", err)
	}
	if err := checkTarget(path, force); err != nil { // the file may exist by now
		return shown, err
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return shown, err
	}
	return shown, persist.SyncFolder(filepath.Dir(path))
}

// verifyCopy verifies a backup that will be renamed to path.
func verifyCopy(ctx context.Context, copied, path string) (backupOutput, error) {
	info, err := os.Stat(copied)
	if err != nil {
		return backupOutput{}, err
	}
	seq, err := persist.VerifyBackup(ctx, copied)
	return backupOutput{File: path, Bytes: info.Size(), Seq: seq}, err
}

// backupTo writes a backup through the process that serves the data directory, or from the
// data file.
func backupTo(ctx context.Context, c *common, to io.Writer) error {
	for try := 1; ; try++ {
		api, err := dialServing(ctx, c)
		if err == nil {
			return errors.Join(fetchBackup(ctx, api, to), api.Close())
		}
		if !errors.Is(err, client.ErrNotServed) {
			return err
		}
		err = copyStore(ctx, c.data, to)
		if errcode.CodeOf(err) != errcode.Conflict || try == maxAttempts { // a process has started or stopped
			return err
		}
	}
}

func fetchBackup(ctx context.Context, api *client.Client, to io.Writer) error {
	from, err := api.OpenBackup(ctx)
	if err != nil {
		return err
	}
	n, err := io.Copy(to, from)
	if err != nil {
		err = fmt.Errorf("the backup ended early, after %d bytes: %w", n, err)
	}
	return errors.Join(err, from.Close())
}

func copyStore(ctx context.Context, dir string, to io.Writer) error {
	known, err := hasData(dir)
	if err != nil {
		return err
	}
	if !known {
		return errNoOrganization(dir)
	}
	store, err := persist.OpenReadOnly(dir)
	if errors.Is(err, persist.ErrOlderSchema) {
		return copyMigrated(ctx, dir, to)
	}
	if err != nil {
		return err
	}
	_, err = store.WriteBackup(ctx, to)
	return errors.Join(err, store.Close())
}

// copyMigrated writes a backup of a data file of an older version, which it does not change.
func copyMigrated(ctx context.Context, dir string, to io.Writer) error {
	temp, err := os.MkdirTemp("", "rolecall-backup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	if err := persist.CopyData(dir, temp); err != nil {
		return err
	}
	store, err := persist.Open(temp)
	if err != nil {
		return err
	}
	_, err = store.WriteBackup(ctx, to)
	return errors.Join(err, store.Close())
}
