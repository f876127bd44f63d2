// Package cmd owns the command line: it reads flags and configuration, puts the
// store, the groups, the models, the modules and the runtime together, and ends
// cleanly. Exit status: 0 done, 1 the work was refused or failed, 2 the command
// line or the configuration is wrong.
//
// cmd/rolecall is its program; a build with modules of one's own is another main
// that hands their kinds to Main.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
)

// Main runs the program with the modules that ship and those of the kinds
// given, and exits with its status. It is the first line of a main: the process
// may be one that rolecall started to run a program behind walls.
func Main(kinds ...modules.Kind) {
	launcher := sandbox.Enter(builtin.Programs())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &common{launcher: launcher, in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv, kinds: kinds}
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	status := run(ctx, c, os.Args[1:])
	stop()
	os.Exit(status)
}

// common is what all commands share: the common flags and the streams.
type common struct {
	files   []string
	data    string
	json    bool
	verbose bool

	kinds    []modules.Kind // beside those that ship
	launcher *sandbox.Launcher
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
}

// usageError is a command line that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errRefused is a failure that the command has already told on stdout.
var errRefused = errors.New("refused")

// run executes a command line and gives the exit status.
func run(ctx context.Context, c *common, args []string) int {
	root := newRootCommand(c)
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.Is(err, errRefused) {
		fmt.Fprintf(c.err, "rolecall: %s\n", cleanLines(err.Error()+c.hint(err)))
	}
	return status(err)
}

func status(err error) int {
	if err == nil {
		return 0
	}
	_, badUsage := errors.AsType[usageError](err)
	_, badConfig := errors.AsType[config.Errors](err)
	if badUsage || badConfig || errcode.Of(err) == errcode.InvalidConfig {
		return 2
	}
	return 1
}

// newRootCommand lists what the program does.
func newRootCommand(c *common) *cobra.Command {
	root := &cobra.Command{
		Use:           "rolecall",
		Short:         "Run organizations of agents whose roles decide what they may do",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q; %q lists what there is", args[0], "rolecall --help")}
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; %q shows the flags", err, cmd.CommandPath()+" --help")}
	})
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&c.files, "file", "f", nil, "configuration `FILE|DIR`; may be given more than once")
	flags.StringVar(&c.data, "data", ".rolecall", "data `directory`")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "log to stderr")
	root.AddCommand(
		newDemoCommand(c), newRunCommand(c), newCheckCommand(c), newMigrateCommand(c), newVersionCommand(c),
		newMCPCommand(c), newRoleCommand(c), newAgentCommand(c), newGroupCommand(c), newToolCommand(c),
		newTaskCommand(c), newArtifactCommand(c), newCanCommand(c),
		newBackupCommand(c), newRestoreCommand(c),
		newServeCommand(c), newTokenCommand(c),
	)
	root.InitDefaultCompletionCmd()
	return root
}

const rootHelp = `rolecall runs organizations of agents. A role says which tools exist for the
agents that hold it; every call passes one gate; every decision is on the
record; and the organization survives kill -9.

Start here:
  rolecall demo                          an organization at work, no key needed
  rolecall run -f org.yaml "TASK"        give a task to an organization of yours
  rolecall can --role analyst read_file  what the gate would say, and why`

// logger writes to out, which is stderr, what is of this level or above, and all
// when asked to.
func (c *common) logger(out io.Writer, least slog.Level) *slog.Logger {
	if c.verbose {
		least = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: least}))
}

// exactly refuses another number of arguments with words.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s takes %s, not %d arguments", cmd.CommandPath(), what, len(args))}
		}
		return nil
	}
}
