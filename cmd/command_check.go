package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

func newCheckCommand(c *common) *cobra.Command {
	var sandboxOnly, online bool
	cmd := &cobra.Command{
		Use:   "check -f FILE",
		Short: "Validate a configuration without starting anything",
		Long: `Validate a configuration and report its mistakes with file, line, column and field.
Nothing of it is started, and the data directory is not touched. --all and --json print
every mistake.

check also says how this system isolates programs that agents run. With --sandbox it
says only that, with one line for each layer: active, or missing and why. The exit status
is 1 if such programs are refused here.

With --online it also contacts the models, MCP servers and sources of a valid
configuration: it asks each model one short question, lists the tools of each MCP server,
and connects to each source. Programs of MCP servers are started for that. One line each
says whether it answers. The exit status is 1 if one does not.`,
		Example: `  rolecall check -f org.yaml
  rolecall check -f org.d --json
  rolecall check -f org.yaml --online
  rolecall check --sandbox`,
		Args: exactArgs(0, "no arguments; name files with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := rejectTogether(cmd, "sandbox", "online"); err != nil {
				return err
			}
			if sandboxOnly {
				return runCheckSandbox(cmd.Context(), c)
			}
			return runChecks(cmd.Context(), c, online)
		},
	}
	cmd.Flags().BoolVar(&c.allErrors, "all", false, fmt.Sprintf("print all mistakes, not only the first %d", maxErrors))
	cmd.Flags().BoolVar(&sandboxOnly, "sandbox", false, "only say how programs are isolated on this system")
	cmd.Flags().BoolVar(&online, "online", false, "also contact the models, MCP servers and sources")
	return cmd
}

func runChecks(ctx context.Context, c *common, online bool) error {
	if len(c.files) == 0 {
		return errNoConfig("check")
	}
	cfg, err := config.LoadFiles(c.files, c.env)
	notes, err := dryRunConfig(ctx, c, cfg, err)
	notes = slices.Concat(notes, cfg.ListWarnings(), modelNotes(cfg), argumentNotes(cfg), identityNotes(c.launcher, cfg, c.data))
	isolation, probeErr := c.launcher.ProbeIsolation(ctx)
	err = errors.Join(err, probeErr)
	var services []app.ServiceProbe
	if online && err == nil {
		services, err = probeOnline(ctx, c, cfg)
	}
	if c.json {
		return errors.Join(printCheck(c, cfg, notes, isolation, services, err), checkProbes(services))
	}
	for _, note := range notes {
		fmt.Fprintln(c.err, "~ "+textutil.Sanitize(note))
	}
	if err != nil {
		return err
	}
	for _, line := range isolationLines(isolation, cfg.Command.Open) {
		fmt.Fprintln(c.err, line)
	}
	for _, s := range services {
		fmt.Fprintln(c.out, textutil.Sanitize(probeLine(s)))
	}
	if err := checkProbes(services); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "ok: %s, %s, %s, %s, %s\n", plural(len(cfg.Files), "file"), plural(len(cfg.Roles), "role"),
		plural(len(cfg.Models), "model"), plural(len(app.ModulesOf(cfg)), "module"), plural(len(cfg.Tools), "declared tool"))
	return err
}

// modelNotes reports that no document names the model of root, if there are roles whose
// agents need a root above them.
func modelNotes(cfg *config.Config) []string {
	if cfg == nil || len(cfg.Roles) == 0 || cfg.Organization.Model != "" {
		return nil
	}
	return []string{"no document of kind: organization names a model, so agents cannot run; commands that serve tools to others work without it"}
}

// argumentNotes reports what declared tools do with unknown arguments, if there are such
// tools.
func argumentNotes(cfg *config.Config) []string {
	if cfg == nil {
		return nil
	}
	lenient := 0 // tools of a source
	for _, t := range cfg.Tools {
		if t.Source != "" {
			lenient++
		}
	}
	if lenient == 0 {
		return nil
	}
	return []string{plural(lenient, "declared tool") + ": arguments that are not among the parameters are ignored, as MCP Toolbox does; the record has them"}
}

// identityNotes reports that programs run as root, if they do: workspaces are in the data
// directory.
func identityNotes(l *sandbox.Launcher, cfg *config.Config, data string) []string {
	if cfg == nil || cfg.Command.Open {
		return nil
	}
	err := l.CheckJobUser(existingDir(data))
	if err == nil {
		return nil
	}
	return []string{fmt.Sprintf("run_command: programs run as root and can read every file below /usr, also those that only root may read: %v. "+
		"Start rolecall as an ordinary user, or keep its data on a file system with id-mapped mounts, such as ext4 or xfs", err)}
}

// existingDir returns dir, or the closest directory above it that exists.
func existingDir(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
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
	dir, err := tempDir("rolecall-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	trial := *c
	trial.data = dir
	s, err := openSession(&trial, &terminal{out: io.Discard}, sessionOptions{})
	if err != nil {
		return nil, err
	}
	err = s.ApplyConfig(ctx, cfg, loaded)
	notes = s.ListNotes() // while the modules run, which have tools
	if err = errors.Join(err, s.Close()); err != nil {
		return nil, err
	}
	return notes, nil
}

// printCheck prints {"ok", "errors", "notes", …}. Its error only sets the exit status.
func printCheck(c *common, cfg *config.Config, notes []string, isolation sandbox.Isolation, services []app.ServiceProbe, err error) error {
	list, ok := errors.AsType[yamldoc.Errors](err)
	if err != nil && !ok {
		return err
	}
	if list == nil {
		list = yamldoc.Errors{}
	}
	out := map[string]any{"ok": err == nil, "errors": list, "notes": append([]string{}, notes...), "files": len(cfg.Files), "roles": len(cfg.Roles), "models": len(cfg.Models), "modules": len(app.ModulesOf(cfg)), "tools": len(cfg.Tools), "sandbox": isolation}
	if services != nil {
		out["services"] = probeItems(services)
	}
	if err := printJSONLine(c.out, out); err != nil {
		return err
	}
	if err != nil {
		return usageError{errReported}
	}
	return nil
}
