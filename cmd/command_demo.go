package cmd

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/examples"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/org"
)

// The files and the task of the demo.
const (
	demoFolder = "incident-desk"
	demoInput  = "access.log"
	demoReport = "incident-report.md"
	demoTask   = "Find out from access.log what went wrong, and write it down."
)

func newDemoCommand(c *common) *cobra.Command {
	var input string
	cmd := &cobra.Command{
		Use:   "demo [--input FILE]",
		Short: "Run an example organization that investigates an incident; needs no API key",
		Long: `An example organization investigates an incident in a web server's access log. Root
creates three roles and spawns an agent of each. The analyst counts requests. The
clerk tries a tool that its role does not have and is denied. The writer writes the
report.

Everything is recorded in the data directory. The commands printed at the end show it.`,
		Example: `  rolecall demo
  rolecall demo --input /var/log/nginx/access.log`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return demoFunc(cmd.Context(), c, input) },
	}
	cmd.Flags().StringVar(&input, "input", "", "investigate this access log `FILE`, in combined format")
	return cmd
}

func demoFunc(ctx context.Context, c *common, input string) error {
	cfg, err := demoConfig(c)
	if err != nil {
		return err
	}
	if err := checkUmask(); err != nil {
		return err
	}
	dir, err := demoWorkspace(c, input)
	if err != nil {
		return err
	}
	spec := org.TaskSpec{Text: demoTask, Caller: identity.ByOperator("cli"), Workspace: dir}
	if err := sandboxUnavailable(ctx, c); err != nil {
		cfg.Command.Open = true
		fmt.Fprintf(c.err, "%v; the demo runs its own scripts without a sandbox\n", err)
	}
	report := filepath.Join(dir, demoReport)
	old, _ := os.Lstat(report) // nil if there is none
	return withSession(ctx, c, func(ctx context.Context, s *session) error {
		before := s.LastSeq()
		id, err := s.StartTask(ctx, spec, cfg)
		if err != nil {
			return err
		}
		if err := s.watch(ctx, c, id, before, 0); err != nil {
			return err
		}
		err = checkReport(report, old)
		printNextCommands(c, report, err == nil, id)
		return err
	})
}

// checkReport returns an error unless the demo has written its report. old describes the
// report of an earlier run.
func checkReport(path string, old fs.FileInfo) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("the demo did not write its report: %w; the result above says why", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("the demo did not write its report: %s is not a file; remove it and start the demo again", path)
	case old != nil && os.SameFile(old, info) && old.ModTime().Equal(info.ModTime()):
		return fmt.Errorf("the demo did not write its report: %s is of an earlier run; the result above says why", path)
	}
	return nil
}

// sandboxUnavailable returns why this system has no sandbox; nil if it has one.
func sandboxUnavailable(ctx context.Context, c *common) error {
	_, err := c.launcher.Run(ctx, sandbox.Job{Argv: []string{"true"}})
	return err
}

// demoConfig reads the configuration of the demo from the binary.
func demoConfig(c *common) (*config.Config, error) {
	var files []yamldoc.File
	for _, name := range []string{"organization.yaml", "desk.js"} {
		data, err := fs.ReadFile(examples.Files, demoFolder+"/"+name)
		if err != nil {
			return nil, err
		}
		files = append(files, yamldoc.File{Path: name, Data: data, Included: !strings.HasSuffix(name, ".yaml")})
	}
	return config.ReadFiles(files, c.env)
}

// demoWorkspace creates the folder that the agents work in, with the log in it.
func demoWorkspace(c *common, input string) (string, error) {
	log, err := fs.ReadFile(examples.Files, demoFolder+"/"+demoInput)
	if input != "" {
		log, err = os.ReadFile(input)
	}
	if err != nil {
		return "", usageError{fmt.Errorf("read the access log: %w", err)}
	}
	dir, err := filepath.Abs(filepath.Join(c.data, "demo"))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("create the demo's workspace: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, demoInput), log, 0o600); err != nil {
		return "", fmt.Errorf("copy the access log into the demo's workspace: %w", err)
	}
	return dir, nil
}

// printNextCommands prints where the report is, if it was written, and which commands show
// what happened.
func printNextCommands(c *common, report string, written bool, id identity.TaskID) {
	if wd, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(wd, report); err == nil && len(short) < len(report) {
			report = short
		}
	}
	if written {
		fmt.Fprintf(c.err, "\nReport: %s\n", report)
	}
	fmt.Fprint(c.err, "\nInspect what happened:\n")
	for _, line := range []string{
		"task show " + string(id), "agent tree", "role list",
		"can --role clerk run_command", "can --who run_javascript", "artifact list",
	} {
		fmt.Fprintf(c.err, "  %s %s%s\n", programName(), line, c.dataFlag())
	}
}

// programName returns how this program was started, for suggested commands.
func programName() string {
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		return "go run ./cmd/rolecall"
	}
	return "rolecall"
}
