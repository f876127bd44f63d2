package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/internal/app"
)

func newCheckCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "check -f FILE",
		Short: "Validate configuration; starts nothing",
		Long: `Validate configuration and report every mistake with file, line, column and
field. Nothing is started, and the data directory is not touched.`,
		Example: `  rolecall check -f org.yaml
  rolecall check -f org.d --json`,
		Args: exactly(0, "no arguments; name files with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error { return checkFunc(cmd.Context(), c) },
	}
}

func checkFunc(ctx context.Context, c *common) error {
	if len(c.files) == 0 {
		return usageError{errors.New("check needs a configuration: -f FILE or -f DIR")}
	}
	cfg, err := config.Load(c.files, c.env)
	notes, err := dryRunConfig(ctx, c, cfg, err)
	notes = append(notes, cfg.Notes()...)
	if c.json {
		return printCheck(c, cfg, notes, err)
	}
	for _, note := range notes {
		fmt.Fprintln(c.err, "~ "+clean(note))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "ok: %s, %s, %s, %s, %s\n", plural(len(cfg.Files), "file"), plural(len(cfg.Roles), "role"),
		plural(len(cfg.Models), "model"), plural(len(app.ModulesOf(cfg)), "module"), plural(len(cfg.Tools), "declared tool"))
	return err
}

// plural says how many there are of what is counted.
func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// dryRunConfig puts the configuration together on a data directory of its own,
// which finds what the files alone do not show. loaded is what Load found.
// The notes are no mistakes.
func dryRunConfig(ctx context.Context, c *common, cfg *config.Config, loaded error) (notes []string, err error) {
	dir, err := os.MkdirTemp("", "rolecall-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	trial := *c
	trial.data = dir
	s, err := openSession(&trial, &terminal{out: io.Discard}, nil)
	if err != nil {
		return nil, err
	}
	if err = errors.Join(s.Configure(ctx, cfg, loaded), s.Close()); err != nil {
		return nil, err
	}
	return s.Notes(), nil
}

// printCheck prints {"ok", "errors", "notes"}; the status still tells.
func printCheck(c *common, cfg *config.Config, notes []string, err error) error {
	list, ok := errors.AsType[config.Errors](err)
	if err != nil && !ok {
		return err
	}
	if list == nil {
		list = config.Errors{}
	}
	out := map[string]any{"ok": err == nil, "errors": list, "notes": append([]string{}, notes...), "files": len(cfg.Files), "roles": len(cfg.Roles), "models": len(cfg.Models), "modules": len(app.ModulesOf(cfg)), "tools": len(cfg.Tools)}
	if err := printLine(c.out, out); err != nil {
		return err
	}
	if err != nil {
		return usageError{errRefused}
	}
	return nil
}
