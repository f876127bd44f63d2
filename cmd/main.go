// Package cmd is the command line. It reads flags and configuration. It runs each command
// either against the gateway of a running process or on the data directory. Package app
// composes the application itself.
//
// Exit status: 0 success, 1 the work was rejected or failed, 2 the command line or the
// configuration is invalid. Results go to stdout, everything else to stderr.
//
// The program is cmd/rolecall. A custom build is another main that passes its kinds of modules
// and brokers to Main:
//
//	func main() { cmd.Main(modules.ModuleKind{Name: "greeter", New: newGreeter}) }
package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// Main runs the program with the modules and brokers that ship and the modules and
// brokers of kinds. It exits with the status of the program. It must be the first
// statement of main: rolecall starts its own executable to run programs in the sandbox,
// and Main handles that case.
func Main(kinds ...Kind) {
	launcher := sandbox.Enter(builtin.SandboxPrograms())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	c := &common{launcher: launcher, in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.LookupEnv}
	c.addKinds(kinds)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	status := run(ctx, c, os.Args[1:])
	stop()
	os.Exit(status)
}

// Kind is a kind of module or broker that a build adds: a modules.ModuleKind or a broker.Kind.
type Kind interface{ KindName() string }

// addKinds adds the kinds of a build. It panics if one is of another type, a mistake of its main.
func (c *common) addKinds(kinds []Kind) {
	for _, k := range kinds {
		switch k := k.(type) {
		case modules.ModuleKind:
			c.kinds = append(c.kinds, k)
		case broker.Kind:
			c.brokers = append(c.brokers, k)
		default:
			panic(fmt.Sprintf("cmd: %T is neither a modules.ModuleKind nor a broker.Kind", k))
		}
	}
}

// common holds what all commands share: the global flags, the streams and the environment.
type common struct {
	files    []string // also the files of --prebuilt
	prebuilt []string
	data     string
	json     bool
	verbose  bool

	allErrors bool // print all errors of a configuration

	kinds    []modules.ModuleKind // in addition to those that ship
	brokers  []broker.Kind        // in addition to those that ship
	launcher *sandbox.Launcher
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	logs     logFormat // set by serve

	answerTimeout time.Duration      // 0 is the default
	openBrowser   func(string) error // opens a page; nil is the function openBrowser
}

// usageError is an invalid command line or configuration; the exit status is 2.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// errReported is a failure that the command has already printed; nothing else is printed.
var errReported = errors.New("refused")

// run executes a command line and returns the exit status.
func run(ctx context.Context, c *common, args []string) int {
	out := &checkedWriter{Writer: c.out}
	c.out = out
	root := newRootCommand(c)
	root.SetArgs(args)
	badTopic := checkHelpTopic(root)
	cmd, err := root.ExecuteContextC(ctx)
	err = cmp.Or(asFlagError(cmd, cmp.Or(err, *badTopic)), out.failure())
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintf(c.err, "rolecall: %s\n", textutil.SanitizeLines(c.errorText(ctx, err)))
	}
	return exitStatus(err)
}

// checkedWriter remembers the first error of its Writer. Nothing may report success if its
// output was lost. It is safe for concurrent use if the Writer is.
type checkedWriter struct {
	io.Writer
	failed atomic.Pointer[error]
}

// Write implements io.Writer.
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		w.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// failure returns the first error of a Write, or nil.
func (w *checkedWriter) failure() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	_, badUsage := errors.AsType[usageError](err)
	_, badConfig := errors.AsType[yamldoc.Errors](err)
	if badUsage || badConfig || errcode.CodeOf(err) == errcode.InvalidConfig {
		return 2
	}
	return 1
}

// newRootCommand returns the command rolecall with all its subcommands.
func newRootCommand(c *common) *cobra.Command {
	var showVersion bool
	root := &cobra.Command{
		Use:           "rolecall",
		Short:         "Run organizations of agents whose roles decide what they may do",
		Long:          rootHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			c.addPrebuilt()
			return rejectEmptyFlags(cmd)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return errUnknownCommand(cmd, args[0])
			case showVersion:
				return runVersion(c)
			}
			return cmd.Help()
		},
	}
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.Flags().BoolVar(&showVersion, "version", false, "print the version")
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	flags.StringArrayVarP(&c.files, "file", "f", nil, "read the configuration from `FILE|DIR`; can be repeated")
	flags.StringArrayVar(&c.prebuilt, "prebuilt", nil, "also read the tools of a database that are prebuilt under `NAME`: mysql, postgres or sqlite")
	flags.StringVar(&c.data, "data", ".rolecall", "data `directory` of the organization; not used with ROLECALL_URL")
	flags.BoolVar(&c.json, "json", false, "print JSON")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "log to stderr")
	root.AddCommand(
		newDemoCommand(c), newInitCommand(c), newRunCommand(c), newChatCommand(c), newCheckCommand(c), newMigrateCommand(c), newVersionCommand(c),
		newMCPCommand(c), newRoleCommand(c), newAgentCommand(c), newGroupCommand(c), newToolCommand(c),
		newTaskCommand(c), newPauseCommand(c), newResumeCommand(c), newApprovalCommand(c), newLogCommand(c), newUsageCommand(c), newArtifactCommand(c), newCanCommand(c), newModelCommand(c),
		newBackupCommand(c), newRestoreCommand(c),
		newServeCommand(c), newTokenCommand(c), newKeyCommand(c),
		newApplyCommand(c), newConfigCommand(c),
	)
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	rejectUnknownTopics(root)
	addCompletions(c, root)
	_ = root.MarkPersistentFlagDirname("data") // the flag exists
	return root
}

const rootHelp = `rolecall runs organizations of agents. A role decides which tools its agents can
call. Every call is checked and recorded. An organization survives kill -9.

Start here:
  rolecall demo                          run an example; needs no API key
  rolecall init                          write a small organization of your own
  rolecall run -f org.yaml "TASK"        run a task in it
  rolecall can -f org.yaml --role analyst read_file
                                         check whether a call would be allowed`

// exactArgs requires n arguments that are not empty; what describes them in the error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) != n:
			return usageError{fmt.Errorf("%s takes %s (arguments given: %d)", commandName(cmd), what, len(args))}
		case slices.Contains(args, ""):
			return usageError{fmt.Errorf("%s takes %s, and an argument is empty", commandName(cmd), what)}
		}
		return nil
	}
}

// commandName returns the words of a command after the name of the program.
func commandName(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}
