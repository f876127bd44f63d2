package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/persist"
)

func newRestoreCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "restore FILE",
		Short: "Bring an organization back from a backup",
		Long: `Bring the organization in FILE, which "rolecall backup" wrote, back into the
data directory of --data. There must be no organization in it; nothing is
overwritten. FILE is checked completely first: one that was cut short or
changed anywhere is refused, and leaves no organization there.

Nothing starts by itself: "rolecall run --resume ID" goes on with a task.

An organization that is brought back knows nothing of what came after the
backup. Rights that were taken away since are there again: look at them with
"rolecall role list" first. A task that goes on does again what it did since;
cancel those that must not. Let it never work beside the one that was copied.`,
		Example: `  rolecall restore before-upgrade.backup
  rolecall restore --data elsewhere /var/backups/rolecall.backup`,
		Args: exactly(1, "the file to read"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return restoreFunc(cmd.Context(), c, args[0])
		},
	}
}

// restoreShown is what restore says with --json.
type restoreShown struct {
	File       string   `json:"file"`
	Data       string   `json:"data"`
	Tasks      int      `json:"tasks"`
	Unfinished []string `json:"unfinished"` // tasks, by age
}

func restoreFunc(ctx context.Context, c *common, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory; name the file that backup wrote", path)
	}
	if err := checkNotServed(c.data); err != nil {
		return err
	}
	if err := persist.Restore(ctx, file, c.data); err != nil {
		return fmt.Errorf("restore %s: %w", path, err)
	}
	shown := restoreShown{File: path, Data: c.data, Unfinished: []string{}}
	if err := shown.look(ctx, c); err != nil {
		return fmt.Errorf("%s is restored; look at it: %w", path, err)
	}
	return shown.tell(c)
}

// checkNotServed refuses a data directory that a process works on.
func checkNotServed(dir string) error {
	api, err := client.Dial(dir)
	switch {
	case errors.Is(err, client.ErrNotServed):
		return nil
	case err != nil:
		return err
	}
	return errors.Join(
		errcode.New(errcode.Conflict, "a process works on the organization in %s; restore into another data directory, or end it and move %s away", dir, persist.FileName),
		api.Close(),
	)
}

// look counts what was brought back.
func (s *restoreShown) look(ctx context.Context, c *common) error {
	bare := *c
	bare.files = nil // no configuration is put in force
	api, done, err := connect(ctx, &bare, readOnly)
	if err != nil {
		return err
	}
	for task, err := range api.Tasks(ctx, "") {
		if err != nil {
			return errors.Join(err, done())
		}
		s.Tasks++
		if task.Status == "running" {
			s.Unfinished = append(s.Unfinished, string(task.ID))
		}
	}
	return done()
}

func (s *restoreShown) tell(c *common) error {
	if c.json {
		return printJSON(c.out, s)
	}
	_, err := fmt.Fprintf(c.out, "restored %s into %s: %d tasks, %d of them unfinished\n", clean(s.File), clean(s.Data), s.Tasks, len(s.Unfinished))
	for _, id := range s.Unfinished {
		fmt.Fprintf(c.err, "  %s run --resume %s%s\n", program(), id, c.dataFlag())
	}
	if len(s.Unfinished) > 0 {
		fmt.Fprintln(c.err, "The agents' workspaces were not in it; put their folders back before a task goes on.")
	}
	return err
}
