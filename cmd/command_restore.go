package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/persist"
)

func newRestoreCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore from a backup",
		Long: `Restore the organization in FILE, which "rolecall backup" wrote, into the data
directory. The directory must not contain an organization; nothing is overwritten.
FILE is verified first. If it is truncated or changed anywhere, nothing is restored.

No task starts by itself: "rolecall run --resume ID" resumes one.

The restored organization does not know what happened after the backup. Permissions
that were revoked since are back: check them with "rolecall role list" first. A
resumed task repeats what it did since; cancel tasks that must not. Never run the
restored organization next to the original one.`,
		Example: `  rolecall restore before-upgrade.backup
  rolecall restore --data elsewhere /var/backups/rolecall.backup`,
		Args: exactArgs(1, "the file to read"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRestore(cmd.Context(), c, args[0])
		},
	}
}

// restoreOutput is the output of restore with --json.
type restoreOutput struct {
	File        string   `json:"file"`
	Data        string   `json:"data"`
	Tasks       int      `json:"tasks"`
	Interrupted []string `json:"interrupted"` // task ids, oldest first
}

func runRestore(ctx context.Context, c *common, path string) error {
	if err := c.rejectFiles("restore"); err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return usageError{fmt.Errorf("%s is a directory; name the file that backup wrote", path)}
	}
	if err := checkNotServed(c.data); err != nil {
		return err
	}
	if err := persist.RestoreBackup(ctx, file, c.data); err != nil {
		return withContext("restore "+path, err)
	}
	shown := restoreOutput{File: path, Data: c.data, Interrupted: []string{}}
	if err := shown.countTasks(ctx, c); err != nil {
		return fmt.Errorf("%s is restored; list its tasks: %w", path, err)
	}
	return shown.print(c)
}

// checkNotServed returns errcode.Conflict if a process serves the data directory.
func checkNotServed(dir string) error {
	api, err := client.Dial(dir)
	switch {
	case errors.Is(err, client.ErrNotServed):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(
		errcode.New(errcode.Conflict, "a process serves the organization in %s; restore into another data directory, or stop it and move %s away", dir, persist.FileName),
		api.Close(),
	)
}

// countTasks fills in the restored tasks.
func (o *restoreOutput) countTasks(ctx context.Context, c *common) error {
	local := *c
	local.env = func(string) (string, bool) { return "", false } // ROLECALL_URL is another organization
	api, done, err := connect(ctx, &local, readOnly)
	if err != nil {
		return err
	}
	for task, err := range api.ListTasks(ctx, "") {
		if err != nil {
			return done(err)
		}
		o.Tasks++
		if !task.Status.Ended() {
			o.Interrupted = append(o.Interrupted, string(task.ID))
		}
	}
	return done(nil)
}

func (o *restoreOutput) print(c *common) error {
	if c.json {
		return printJSON(c.out, o)
	}
	_, err := fmt.Fprintf(c.out, "restored %s into %s: %s, %d of them interrupted\n", textutil.Sanitize(o.File), textutil.Sanitize(o.Data), plural(o.Tasks, "task"), len(o.Interrupted))
	for _, id := range o.Interrupted {
		fmt.Fprintf(c.err, "  %s run --resume %s%s\n", programName(), id, c.dataFlag())
	}
	if len(o.Interrupted) > 0 {
		fmt.Fprintln(c.err, "The backup does not contain the agents' workspaces; restore their folders before you resume a task.")
	}
	return err
}
