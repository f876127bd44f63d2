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
	"github.com/rolecall/rolecall/internal/textutil"
)

func newCheckCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "check -f FILE",
		Short: "Validate a configuration without starting anything",
		Long: `Validate a configuration and report every mistake with file, line, column and field.
Nothing is started, and the data directory is not touched.`,
		Example: `  rolecall check -f org.yaml
  rolecall check -f org.d --json`,
		Args: exactArgs(0, "no arguments; name files with -f"),
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
		fmt.Fprintln(c.err, "~ "+textutil.Sanitize(note))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "ok: %s, %s, %s, %s, %s\n", plural(len(cfg.Files), "file"), plural(len(cfg.Roles), "role"),
		plural(len(cfg.Models), "model"), plural(len(app.ModulesOf(cfg)), "module"), plural(len(cfg.Tools), "declared tool"))
	return err
}

// plural returns a count with its noun.
func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

// dryRunConfig applies the configuration to a temporary data directory, which finds mistakes
// that loading does not. loaded is the error of loading. notes are not mistakes.
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
	return s.ModelNotes(), nil
}

// printCheck prints {"ok", "errors", "notes", …}. Its error only sets the exit status.
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
		return usageError{errReported}
	}
	return nil
}
