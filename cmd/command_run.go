package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/toolgroups"
)

// runOptions are the flags of run, and the task.
type runOptions struct {
	workspace string
	groups    []string
	state     string
	timeout   time.Duration
	timed     bool // whether --timeout was given
	resume    string

	text string
}

func newRunCommand(c *common) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] \"TASK\"",
		Short: "Run a task and wait for the result",
		Long: `Run a task in the organization, starting with its root agent, and wait for the result.
The result is printed on stdout, events are shown on stderr.

If the process is interrupted or killed, --resume continues the task with the
configuration and workspace it was started with.`,
		Example: `  rolecall run -f org.yaml "What went wrong last night?"
  rolecall run -f org.yaml --workspace ./logs:ro "Summarise the logs"
  rolecall run -f org.yaml --group workspace --group org_management "Only files"
  rolecall run --resume 01a1fded-ba9c-76b0-b2c8-51f0fecce8df`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("resume") {
				return argCount(1, "one task in quotes")(cmd, args)
			}
			return exactArgs(0, "no task with --resume")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectTogether(cmd, "resume", "workspace", "group", "state"); err != nil {
				return err
			}
			o.text, o.timed = strings.Join(args, ""), cmd.Flags().Changed("timeout")
			return runFunc(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "use `DIR[:ro]` as the workspace of all agents of the task")
	flags.StringArrayVar(&o.groups, "group", nil, "restrict the task to this tool `group`; can be repeated")
	flags.StringVar(&o.state, "state", "", "start the agents in this workflow `state`")
	flags.DurationVar(&o.timeout, "timeout", 0, "cancel the task after this `duration`")
	flags.StringVar(&o.resume, "resume", "", "resume the task with this `id`")
	return cmd
}

func runFunc(ctx context.Context, c *common, o *runOptions) error {
	spec, err := o.spec()
	if err != nil {
		return err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	return withSession(ctx, c, func(ctx context.Context, s *session) error {
		id, before := identity.TaskID(o.resume), s.LastSeq()
		if id != "" {
			err = s.ResumeTask(ctx, id, cfg)
		} else {
			id, err = s.StartTask(ctx, spec, cfg)
			if errcode.CodeOf(err) == errcode.GroupNotFound {
				err = usageError{fmt.Errorf("--group: %s; %q lists them", errcode.Message(err), "rolecall group list"+c.fileFlags()+c.dataFlag())}
			}
		}
		if err != nil {
			return err
		}
		return s.watch(ctx, c, id, before, o.timeout)
	})
}

// session is an App and the terminal that shows its events.
type session struct {
	*app.App
	screen *terminal
}

// openSession opens the application on the data directory. fatal is called when the store
// has stopped; if it is nil the application is read-only (see app.Options.Fatal). With look
// it cannot commit anything.
func openSession(c *common, screen *terminal, look bool, fatal func(error)) (*session, error) {
	if err := checkUmask(); err != nil {
		return nil, err
	}
	var logs io.Writer = c.err
	if fatal != nil {
		logs = screen // the terminal holds them back while a person is asked
	}
	a, err := app.Open(app.Options{
		Data: c.data, Look: look, Files: c.files, Env: c.env, Launcher: c.launcher, Kinds: c.kinds, Version: version(),
		Console: screen, Human: func() model.Model { return newHuman(c.in, screen) },
		Log: c.logger(logs, slog.LevelError), Warn: c.logger(logs, slog.LevelWarn), Fatal: fatal,
	})
	if err != nil {
		return nil, err
	}
	return &session{a, screen}, nil
}

// newHuman returns the person at the terminal as a model. It disables the tree, which would
// overwrite the questions.
func newHuman(in io.Reader, screen *terminal) model.Model {
	screen.disableTree()
	name := func(id identity.AgentID, role string) string { return screen.names.nameOf(string(id), role) }
	return human.New(in, promptWriter{screen}, &human.Options{Name: name, Lock: screen.lock})
}

// withSession opens a session, serves its socket while fn runs, and closes it. When the
// store stops it cancels fn's context.
func withSession(ctx context.Context, c *common, fn func(context.Context, *session) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := openSession(c, newTerminal(c.err), false, func(err error) { cancel(err) })
	if err != nil {
		return err
	}
	stop, err := s.ServeSocket()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = fn(ctx, s)
	end, closed := stop(), s.CloseWithin(closeTimeout)
	if persist.IsClosed(err) && persist.IsClosed(closed) {
		closed = nil // it is the same error
	}
	return errors.Join(err, end, closed)
}

// closeTimeout is how long the program waits on exit for tools and scripts in progress.
const closeTimeout = 10 * time.Second

// loadConfig reads the configuration of -f; nil without -f.
func loadConfig(c *common) (*config.Config, error) {
	if len(c.files) == 0 {
		return nil, nil
	}
	return config.LoadFiles(c.files, c.env)
}

// spec converts the flags to a task.
func (o *runOptions) spec() (org.TaskSpec, error) {
	if o.timed && o.timeout <= 0 {
		return org.TaskSpec{}, usageError{fmt.Errorf("--timeout %v is not positive; omit it for no limit", o.timeout)}
	}
	spec := org.TaskSpec{Text: o.text, Caller: identity.ByOperator("cli"), State: o.state}
	if o.groups != nil {
		set := toolgroups.SetOfNames(o.groups...)
		spec.Groups = &set
	}
	if o.workspace == "" {
		return spec, nil
	}
	dir, readOnly := strings.CutSuffix(o.workspace, ":ro")
	dir, err := filepath.Abs(dir)
	if err != nil {
		return spec, usageError{err}
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return spec, usageError{fmt.Errorf("--workspace %s is not a readable directory", dir)}
	}
	spec.Workspace, spec.ReadOnly = dir, readOnly
	return spec, nil
}

// watch shows the events of a task after event before, waits for its end, and prints the
// result.
func (s *session) watch(ctx context.Context, c *common, id identity.TaskID, before uint64, timeout time.Duration) error {
	fmt.Fprintf(c.err, "task %s\n", id)
	s.printNotes()
	if timeout > 0 {
		stop := time.AfterFunc(timeout, func() {
			if err := s.Runtime.CancelTask(context.WithoutCancel(ctx), id, "timeout of "+timeout.String()+" exceeded"); err != nil {
				fmt.Fprintln(c.err, "rolecall:", err)
			}
		})
		defer stop.Stop()
	}
	err := s.show(ctx, c, id, before)
	if err != nil && !persist.IsClosed(err) {
		return err
	}
	var task org.Task
	if err == nil {
		task, err = s.Runtime.WaitTask(ctx, id)
	}
	if err != nil {
		return s.interrupted(ctx, c, id, err)
	}
	s.printUsage(ctx, c, id)
	return printResult(c, task)
}

// printNotes prints which models and sources cannot be used.
func (s *session) printNotes() {
	for _, note := range s.ListNotes() {
		fmt.Fprintln(s.screen, "~ "+textutil.Sanitize(note))
	}
}

// printUsage prints the tokens that a task has used, if its models counted any. A recording
// reports the usage of an earlier run, so it is not printed.
func (s *session) printUsage(ctx context.Context, c *common, id identity.TaskID) {
	u, err := s.Runtime.TaskUsage(ctx, id)
	if err != nil || u.Input+u.Output == 0 || !s.CountsTokens() {
		return
	}
	line := fmt.Sprintf("used %d tokens, %d of them output", u.Input+u.Output, u.Output)
	if u.Estimated {
		line += ", partly estimated"
	}
	if u.Cost > 0 {
		line += "; cost " + u.Cost.String()
	}
	fmt.Fprintln(c.err, line)
}

// show prints the events of a task until it ends or ctx does. An earlier process has shown
// the events up to before, so the view only learns from them, except for the result.
func (s *session) show(ctx context.Context, c *common, id identity.TaskID, before uint64) error {
	task, err := s.Runtime.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	view := newView(c, s.screen)
	for e, err := range s.Runtime.WatchTask(ctx, id, task.FirstSeq) {
		if err != nil {
			return fmt.Errorf("follow task %s: %w", id, err)
		}
		_, ended := e.Body.(journal.TaskEnded)
		if e.Seq > 0 && e.Seq <= before && !ended {
			view.observe(e)
			continue
		}
		if err := view.event(e); err != nil || ended {
			return err
		}
	}
	return nil
}

// interrupted handles an error of watch: if ctx or the store has ended, it prints how to
// resume the task.
func (s *session) interrupted(ctx context.Context, c *common, id identity.TaskID, err error) error {
	stopped := persist.IsClosed(err) // may be seen before ctx ends
	if ctx.Err() == nil && !stopped {
		return err
	}
	fmt.Fprintf(c.err, "stopped; resume with: %s run --resume %s%s\n", programName(), id, c.dataFlag())
	switch cause := context.Cause(ctx); {
	case stopped:
		return err
	case !errors.Is(cause, context.Canceled):
		return cause
	}
	return errReported
}

// dataFlag returns the flag --data for suggested commands; "" for the default.
func (c *common) dataFlag() string {
	if c.data == ".rolecall" {
		return ""
	}
	return " --data " + quoteWord(c.data)
}

// fileFlags returns the flags --file for suggested commands.
func (c *common) fileFlags() (flags string) {
	for _, name := range c.files {
		flags += " -f " + quoteWord(name)
	}
	return flags
}

// plainWord matches words that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoteWord returns a word in the form that a shell needs.
func quoteWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printResult prints the result of a task: a string as text, anything else as JSON. It
// sanitizes the text for a terminal only.
func printResult(c *common, task org.Task) error {
	if task.Status != org.Done {
		if !c.json {
			text := taskErrorText(*task.Error)
			if task.Status != org.Cancelled {
				text = fmt.Sprintf("task %s: %s", task.Status, text)
			}
			fmt.Fprintln(c.err, "rolecall:", textutil.Sanitize(text))
		}
		return errReported
	}
	if c.json { // the last event contains the result
		return nil
	}
	var text string
	if json.Unmarshal(task.Result, &text) != nil {
		text = string(task.Result)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if isTerminal(c.out) {
		text = textutil.SanitizeLines(text)
	}
	_, err := io.WriteString(c.out, text)
	return err
}
