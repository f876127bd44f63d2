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
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/toolgroups"
)

type runOptions struct {
	workspace string
	groups    []string
	state     string
	timeout   time.Duration
	timed     bool // --timeout is given
	resume    string

	text string
}

func newRunCommand(c *common) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] \"TASK\"",
		Short: "Give one task to the organization and wait for its result",
		Long: `Give one task to the organization's root and wait for its result, which is
printed on stdout. What the organization does is shown on stderr.

Killed or interrupted, the task stays where it was; --resume takes it up again
with the configuration and workspace it was started with.`,
		Example: `  rolecall run -f org.yaml "What went wrong last night?"
  rolecall run -f org.yaml --workspace ./logs:ro "Summarise the logs"
  rolecall run -f org.yaml --group workspace --group org_management "Only files"
  rolecall run --resume 01a1fded-ba9c-76b0-b2c8-51f0fecce8df`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.resume == "" {
				return exactly(1, "one task in quotes")(cmd, args)
			}
			return exactly(0, "no task beside --resume")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.text, o.timed = strings.Join(args, ""), cmd.Flags().Changed("timeout")
			return runFunc(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "`DIR[:ro]` that serves all agents of the task")
	flags.StringArrayVar(&o.groups, "group", nil, "narrow the task to this tool `group`; may be given more than once")
	flags.StringVar(&o.state, "state", "", "workflow `state` the agents start in")
	flags.DurationVar(&o.timeout, "timeout", 0, "cancel the task after this `time`")
	flags.StringVar(&o.resume, "resume", "", "take up the task of this `id` again")
	cmd.MarkFlagsMutuallyExclusive("resume", "workspace")
	cmd.MarkFlagsMutuallyExclusive("resume", "group")
	cmd.MarkFlagsMutuallyExclusive("resume", "state")
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
		id, before := identity.TaskID(o.resume), s.Seq()
		if id != "" {
			err = s.Resume(ctx, id, cfg)
		} else {
			id, err = s.Start(ctx, spec, cfg)
			if errcode.Of(err) == errcode.GroupNotFound {
				err = usageError{fmt.Errorf("--group: %s; %q lists them", errcode.Message(err), "rolecall group list")}
			}
		}
		if err != nil {
			return err
		}
		return s.watch(ctx, c, id, before, o.timeout)
	})
}

// session is an App and the terminal that shows what it does.
type session struct {
	*app.App
	screen *terminal
}

// openSession composes the application on the data directory. fatal is called when
// the store has stopped; without it the application only answers questions.
func openSession(c *common, screen *terminal, fatal func(error)) (*session, error) {
	var logs io.Writer = c.err
	if fatal != nil {
		logs = screen // a question to a person is not overwritten
	}
	a, err := app.Open(app.Options{
		Data: c.data, Files: c.files, Env: c.env, Launcher: c.launcher, Kinds: c.kinds, Version: version(),
		Console: screen, Human: func() model.Model { return newHuman(c.in, screen) },
		Log: c.logger(logs, slog.LevelError), Warn: c.logger(logs, slog.LevelWarn), Fatal: fatal,
	})
	if err != nil {
		return nil, err
	}
	return &session{a, screen}, nil
}

// newHuman returns the person at the terminal as a model. No tree is drawn on their
// screen.
func newHuman(in io.Reader, screen *terminal) model.Model {
	screen.disableTree()
	name := func(id identity.AgentID, role string) string { return screen.names.of(string(id), role) }
	return human.New(in, promptWriter{screen}, &human.Options{Name: name, Lock: screen.lock})
}

// withSession opens a session, serves its socket while fn runs, and closes it. A
// store that stops ends fn's context.
func withSession(ctx context.Context, c *common, fn func(context.Context, *session) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s, err := openSession(c, newScreen(c.err), func(err error) { cancel(err) })
	if err != nil {
		return err
	}
	stop, err := s.ServeSocket()
	if err != nil {
		return errors.Join(err, s.Close())
	}
	err = fn(ctx, s)
	end, closed := stop(), s.CloseWithin(grace)
	if persist.IsClosed(err) && persist.IsClosed(closed) {
		closed = nil // the same error once more
	}
	return errors.Join(err, end, closed)
}

// grace is how long what is under way may take to end when the program does.
const grace = 10 * time.Second

// loadConfig reads what -f names; nil when it names nothing.
func loadConfig(c *common) (*config.Config, error) {
	if len(c.files) == 0 {
		return nil, nil
	}
	return config.Load(c.files, c.env)
}

// spec reads the flags into a task.
func (o *runOptions) spec() (org.TaskSpec, error) {
	if o.timed && o.timeout <= 0 {
		return org.TaskSpec{}, usageError{fmt.Errorf("--timeout %v is no time to work in; leave it out for no limit", o.timeout)}
	}
	spec := org.TaskSpec{Text: o.text, Caller: identity.ByOperator("cli"), State: o.state}
	if o.groups != nil {
		set := toolgroups.OfNames(o.groups...)
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
		return spec, usageError{fmt.Errorf("--workspace %s is not a directory that can be read", dir)}
	}
	spec.Workspace, spec.ReadOnly = dir, readOnly
	return spec, nil
}

// watch shows a task at work, as from event before on, and prints its result.
func (s *session) watch(ctx context.Context, c *common, id identity.TaskID, before uint64, timeout time.Duration) error {
	fmt.Fprintf(c.err, "task %s\n", id)
	s.printNotes()
	if timeout > 0 {
		stop := time.AfterFunc(timeout, func() {
			if err := s.Runtime.Cancel(context.WithoutCancel(ctx), id, "it took longer than "+timeout.String()); err != nil {
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
		task, err = s.Runtime.Wait(ctx, id)
	}
	if err != nil {
		return s.interrupted(ctx, c, id, err)
	}
	s.printUsage(ctx, c, id)
	return printResult(c, task)
}

// printNotes prints what is missing of the models and stops nothing yet.
func (s *session) printNotes() {
	for _, note := range s.Notes() {
		fmt.Fprintln(s.screen, "~ "+clean(note))
	}
}

// printUsage says what a task's models used up, if they counted. What is on a
// recording somebody used up before.
func (s *session) printUsage(ctx context.Context, c *common, id identity.TaskID) {
	u, err := s.Runtime.Usage(ctx, id)
	if err != nil || u.Input+u.Output == 0 || !s.CountsTokens() {
		return
	}
	line := fmt.Sprintf("used %d tokens, %d of them answers", u.Input+u.Output, u.Output)
	if u.Estimated {
		line += ", in part estimated"
	}
	if u.Cost > 0 {
		line += "; cost " + u.Cost.String()
	}
	fmt.Fprintln(c.err, line)
}

// show prints a task's events until it has ended or ctx does. Those up to
// before were shown by an earlier process: the view only learns from them,
// but for the end.
func (s *session) show(ctx context.Context, c *common, id identity.TaskID, before uint64) error {
	task, err := s.Runtime.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	view := newView(c, s.screen)
	for e, err := range s.Runtime.Watch(ctx, id, task.FirstSeq) {
		if err != nil {
			return fmt.Errorf("follow task %s: %w", id, err)
		}
		_, ended := e.Body.(journal.Result)
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

func (s *session) interrupted(ctx context.Context, c *common, id identity.TaskID, err error) error {
	stopped := persist.IsClosed(err) // a reader may hear of it before ctx ends
	if ctx.Err() == nil && !stopped {
		return err
	}
	fmt.Fprintf(c.err, "stopped; go on with: %s run --resume %s%s\n", program(), id, c.dataFlag())
	switch cause := context.Cause(ctx); {
	case stopped:
		return err
	case !errors.Is(cause, context.Canceled):
		return cause
	}
	return errRefused
}

// dataFlag repeats --data in commands that are suggested.
func (c *common) dataFlag() string {
	if c.data == ".rolecall" {
		return ""
	}
	return " --data " + c.data
}

// printResult prints a task's outcome: a string as it is, anything else as
// JSON; on a terminal without what could act on it.
func printResult(c *common, task org.Task) error {
	if task.Status != org.Done {
		if !c.json {
			fmt.Fprintf(c.err, "rolecall: task %s: %s: %s\n", task.Status, task.Error.Code, clean(task.Error.Message))
		}
		return errRefused
	}
	if c.json { // the last event has said it
		return nil
	}
	var text string
	if json.Unmarshal(task.Result, &text) != nil {
		text = string(task.Result)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if onTerminal(c.out) {
		text = cleanLines(text)
	}
	_, err := io.WriteString(c.out, text)
	return err
}
