package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
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
	return withApp(ctx, c, func(ctx context.Context, h *App) error {
		id, before := identity.TaskID(o.resume), h.store.Seq()
		if id != "" {
			err = h.resume(ctx, c, id, cfg)
		} else {
			id, err = h.start(ctx, spec, cfg)
		}
		if err != nil {
			return err
		}
		return h.watch(ctx, c, id, before, o.timeout)
	})
}

// withApp puts a house together, serves its socket while fn runs, and takes
// it down. A store that stops ends fn's context.
func withApp(ctx context.Context, c *common, fn func(context.Context, *App) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	screen := newScreen(c.err)
	h, err := newApp(c, appOptions{screen: screen, fatal: func(err error) { cancel(err) }})
	if err != nil {
		return err
	}
	stop, err := h.serve(c)
	if err != nil {
		return errors.Join(err, h.Close())
	}
	err = fn(ctx, h)
	end, closed := stop(), h.closeWithin(grace)
	if persist.IsClosed(err) && persist.IsClosed(closed) {
		closed = nil // it tells the same once more
	}
	return errors.Join(err, end, closed)
}

// grace is how long what is under way may take to end when the program does.
const grace = 10 * time.Second

// closeWithin closes the house, or gives up: a tool or brain that does not end
// must not keep the program from ending. What it was doing is left open.
func (h *App) closeWithin(d time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- h.Close() }()
	select {
	case err := <-done:
		return err
	case <-time.After(d):
		return fmt.Errorf("something did not stop within %v; the task can be resumed", d)
	}
}

// serve answers the other commands on the data directory's socket.
func (h *App) serve(c *common) (stop func() error, err error) {
	handler, err := h.api(c)
	if err != nil {
		return nil, err
	}
	l, err := gateway.Listen(c.data)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, gateway.TrustLocalOwner(handler)) }()
	return func() error {
		cancel()
		return <-done
	}, nil
}

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
		set := toolgroups.Of(groupIDs(o.groups)...)
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

// start records the configuration and begins the task.
func (h *App) start(ctx context.Context, spec org.TaskSpec, cfg *config.Config) (identity.TaskID, error) {
	if err := h.knowGroups(spec.Groups); err != nil {
		return "", err
	}
	if cfg != nil {
		if err := h.configure(ctx, cfg, nil); err != nil {
			return "", err
		}
		record, err := json.Marshal(cfg.Files)
		if err != nil {
			return "", fmt.Errorf("record the configuration: %w", err)
		}
		if spec.Config, err = h.rt.PutBlob(record); err != nil {
			return "", fmt.Errorf("record the configuration: %w", err)
		}
	}
	if _, err := h.model(""); err != nil {
		return "", err
	}
	return h.rt.Start(ctx, spec)
}

// knowGroups refuses a narrowing to groups that nobody registered.
func (h *App) knowGroups(set *toolgroups.Set) error {
	if set == nil {
		return nil
	}
	for _, id := range set.IDs() {
		if h.groups.Snapshot().Owner(id) == "" {
			return usageError{fmt.Errorf("--group %s: there is no such tool group; %q lists them", id, "rolecall group list")}
		}
	}
	return nil
}

// resume takes a task up again, with the configuration given or else recorded.
func (h *App) resume(ctx context.Context, c *common, id identity.TaskID, cfg *config.Config) error {
	task, err := h.rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	if task.Status != org.Running {
		return nil
	}
	switch {
	case cfg != nil:
		err = h.configure(ctx, cfg, nil)
	case task.Config != "":
		if cfg, err = h.recorded(ctx, c, task.Config); err == nil {
			err = h.restoreConfig(ctx, cfg)
		}
	}
	if err != nil {
		return err
	}
	return h.rt.Resume(ctx, id)
}

func (h *App) recorded(ctx context.Context, c *common, hash string) (*config.Config, error) {
	record, err := h.rt.Blob(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("read the recorded configuration: %w", err)
	}
	var files []config.File
	if err := json.Unmarshal(record, &files); err != nil {
		return nil, fmt.Errorf("read the recorded configuration: %w", err)
	}
	return config.Read(files, c.env)
}

// watch shows a task at work, as from event before on, and prints its result.
func (h *App) watch(ctx context.Context, c *common, id identity.TaskID, before uint64, timeout time.Duration) error {
	fmt.Fprintf(c.err, "task %s\n", id)
	for _, note := range h.models.Load().notes {
		fmt.Fprintln(h.screen, "~ "+clean(note))
	}
	if timeout > 0 {
		stop := time.AfterFunc(timeout, func() {
			if err := h.rt.Cancel(context.WithoutCancel(ctx), id, "it took longer than "+timeout.String()); err != nil {
				fmt.Fprintln(c.err, "rolecall:", err)
			}
		})
		defer stop.Stop()
	}
	err := h.show(ctx, c, id, before)
	if err != nil && !persist.IsClosed(err) {
		return err
	}
	var task org.Task
	if err == nil {
		task, err = h.rt.Wait(ctx, id)
	}
	if err != nil {
		return h.interrupted(ctx, c, id, err)
	}
	h.printUsage(ctx, c, id)
	return printResult(c, task)
}

// printUsage says what a task's models used up, if they counted. What is on a
// recording somebody used up before.
func (h *App) printUsage(ctx context.Context, c *common, id identity.TaskID) {
	u, err := h.rt.Usage(ctx, id)
	if err != nil || u.Input+u.Output == 0 || !h.models.Load().counts {
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
func (h *App) show(ctx context.Context, c *common, id identity.TaskID, before uint64) error {
	task, err := h.rt.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	view := newView(c, h.screen)
	for e, err := range h.rt.Watch(ctx, id, task.FirstSeq) {
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

func (h *App) interrupted(ctx context.Context, c *common, id identity.TaskID, err error) error {
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
