package cmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	demoFolder    = "incident-desk"
	demoInput     = "access.log"
	demoReport    = "incident-report.md"
	demoWorkspace = "workspace" // in the data directory
	demoTask      = "Find out from access.log what went wrong, and write it down."
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

Each demo has a data directory of its own, .rolecall/demo-1 and so on. --data names
another one; if that is not empty, the demo gets a directory in it. The commands printed
at the end show what was recorded there.`,
		Example: `  rolecall demo
  rolecall demo --input /var/log/nginx/access.log`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(c.files) > 0 {
				return usageError{fmt.Errorf("demo has its own configuration; omit --file, or use %q", "rolecall run -f FILE TASK")}
			}
			own := *c
			return runDemo(cmd.Context(), &own, input, cmd.Flags().Changed("data"))
		},
	}
	cmd.Flags().StringVar(&input, "input", "", "investigate this access log `FILE`, in combined format")
	return cmd
}

// runDemo runs the demo and sets c.data to its data directory. given reports whether the
// command line named c.data.
func runDemo(ctx context.Context, c *common, input string, given bool) error {
	cfg, err := demoConfig(c)
	if err != nil {
		return err
	}
	log, err := readDemoInput(input)
	if err != nil {
		return err
	}
	if err := checkUmask(); err != nil {
		return err
	}
	if c.data, err = createDemoData(c.data, given); err != nil {
		return err
	}
	dir, err := createDemoWorkspace(c.data, log)
	if err != nil {
		return err
	}
	spec := org.TaskSpec{Text: demoTask, Caller: identity.ByOperator("cli"), Workspace: dir}
	if err := checkSandbox(ctx, c); err != nil {
		cfg.Command.Open = true
		fmt.Fprintf(c.err, "%v; the demo runs its own scripts without a sandbox\n", err)
	}
	report := filepath.Join(dir, demoReport)
	return withSession(ctx, c, sessionOptions{}, func(ctx context.Context, s *session) error {
		before := s.LastSeq()
		id, err := s.StartTask(ctx, spec, cfg)
		if err != nil {
			return err
		}
		if err := s.followTask(ctx, c, id, before); err != nil {
			return err
		}
		err = checkReport(report)
		printNextCommands(c, report, err == nil, id)
		return err
	})
}

// checkReport returns an error unless the demo has written its report.
func checkReport(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("the demo did not write its report: %w; the result above says why", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("the demo did not write its report: %s is not a file; the result above says why", path)
	}
	return nil
}

// checkSandbox returns why this system has no sandbox; nil if it has one.
func checkSandbox(ctx context.Context, c *common) error {
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
		files = append(files, yamldoc.File{Path: name, Data: data, Named: !strings.HasSuffix(name, ".yaml")})
	}
	return config.ReadFiles(files, c.env)
}

// readDemoInput reads the access log: the bundled one, or the file of --input.
func readDemoInput(input string) ([]byte, error) {
	if input == "" {
		return fs.ReadFile(examples.Files, demoFolder+"/"+demoInput)
	}
	log, err := os.ReadFile(input)
	if err != nil {
		return nil, usageError{err}
	}
	return log, nil
}

// createDemoData creates the data directory of a demo. That is dir, if the command line
// names it and it is missing or empty. Otherwise it is the first of demo-1, demo-2 … in dir
// that is missing.
func createDemoData(dir string, given bool) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("create the data directory of the demo: %w; use --data DIR for another directory", err)
	}
	err = os.MkdirAll(dir, 0o700)
	if err == nil && given && len(entries) == 0 {
		return dir, nil
	}
	for n := 1; err == nil; n++ {
		own := demoDir(dir, n)
		if err = os.Mkdir(own, 0o700); err == nil {
			return own, nil
		}
		if errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return "", fmt.Errorf("create the data directory of the demo: %w; use --data DIR for another directory", err)
}

// demoDir returns the path of the n-th demo in a directory.
func demoDir(dir string, n int) string { return filepath.Join(dir, "demo-"+strconv.Itoa(n)) }

// createDemoWorkspace creates the folder that the agents work in, with the log in it.
func createDemoWorkspace(data string, log []byte) (string, error) {
	dir, err := filepath.Abs(filepath.Join(data, demoWorkspace))
	if err != nil {
		return "", err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
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
		fmt.Fprintf(c.err, "  %s%s %s%s\n", c.unsetPrefix(), programName(), line, c.dataFlag())
	}
}

// unsetPrefix unsets the variables that name a gateway, for suggested commands that work on
// a directory of this machine; "" if they are not set.
func (c *common) unsetPrefix() (prefix string) {
	for _, name := range []string{urlVariable, tokenVariable} {
		if c.getenv(name) != "" {
			prefix += name + "= "
		}
	}
	return prefix
}

// programName returns how this program was started, for suggested commands.
func programName() string {
	if exe, err := os.Executable(); err == nil && strings.Contains(exe, "go-build") {
		return "go run ./cmd/rolecall"
	}
	return "rolecall"
}

// demoHint names the data directory of the latest demo in dir; "" if there is none.
func demoHint(dir string) string {
	entries, _ := os.ReadDir(dir) // a hint only
	latest := 0
	for _, e := range entries {
		text, ok := strings.CutPrefix(e.Name(), "demo-")
		if n, err := strconv.Atoi(text); ok && err == nil && e.IsDir() {
			latest = max(latest, n)
		}
	}
	if latest == 0 {
		return ""
	}
	return fmt.Sprintf(", such as %s of the latest demo", demoDir(dir, latest))
}
