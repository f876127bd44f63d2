package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// runOptions are the flags of run, and the task.
type runOptions struct {
	role      string
	workspace string
	groups    []string
	state     string
	inputs    []string
	images    []string
	attached  []string
	schema    string
	timeout   time.Duration
	timed     bool // whether --timeout was given
	detach    bool
	resume    string
	ask       bool // asks an agent of role
	budget    client.Budget

	text string
}

const runHelp = `Run a task in the organization, starting with its root agent or an agent of --role,
and wait for the result. The result is printed on stdout, events are shown on stderr.

If a process serves the data directory, or ROLECALL_URL names one, the task runs there.
It goes on after Ctrl-C, and run prints how to follow and cancel it. --detach prints the
id of the task and does not wait.

Otherwise the task runs in this process. If that is interrupted or killed, --resume
continues the task with the configuration and workspace it was started with.

--workspace names a directory, or a workspace of the configuration where there is no such
directory. With ROLECALL_URL it is always a name: a gateway accepts no path.

--image and --attach pass files of yours to the first agent. They become artifacts of the
task, and a short text is part of the first message. A model that sees is shown the images.

--group bounds the tools of all agents but root, and what root can grant. Root itself
always has org_management, and only that.`

func newRunCommand(c *common) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] \"TASK\"",
		Short: "Run a task and wait for the result",
		Long:  runHelp,
		Example: `  rolecall run -f org.yaml "What went wrong last night?"
  rolecall run -f org.yaml --workspace ./logs:ro "Summarise the logs"
  rolecall run -f org.yaml --role analyst "Summarise access.log"
  rolecall run -f org.yaml --group workspace --group org_management "Only files"
  rolecall run -f org.yaml --input 'day="2026-01-31"' "Write the report of the day"
  rolecall run -f org.yaml --role analyst --image chart.png "What does the chart show?"
  rolecall run --resume last`,
		Args: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("resume") {
				return exactArgs(1, "one task in quotes")(cmd, args)
			}
			return exactArgs(0, "no task with --resume")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := rejectTogether(cmd, "resume", "role", "workspace", "group", "state", "input", "image", "attach", "result", "timeout", "tokens", "requests", "cost", "detach"); err != nil {
				return err
			}
			if cmd.Flags().Changed("result") && o.schema == "" {
				return usageError{errors.New("--result is empty; set a value or omit it")}
			}
			o.text, o.timed = strings.Join(args, ""), cmd.Flags().Changed("timeout")
			return runGivenTask(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workspace, "workspace", "", "use `DIR[:ro]`, or the configured workspace NAME[:ro], as the workspace of all agents of the task")
	flags.StringVar(&o.role, "role", "", "start with an agent of this `role`, by id or name; default: root")
	flags.StringArrayVar(&o.groups, "group", nil, "let all agents but root use this tool `group` only; can be repeated")
	flags.StringVar(&o.state, "state", "", "start the agents in this workflow `state`")
	flags.StringArrayVar(&o.inputs, "input", nil, "pass data to the first agent, as `NAME=JSON`; can be repeated")
	flags.StringArrayVar(&o.images, "image", nil, "show the first agent the image in this `file`; can be repeated")
	flags.StringArrayVar(&o.attached, "attach", nil, "pass this `file` to the first agent, as an artifact of the task; can be repeated")
	flags.StringVar(&o.schema, "result", "", "require a result that fits the JSON schema in this `file`")
	flags.DurationVar(&o.timeout, "timeout", 0, "cancel the task after this `duration`")
	flags.Int64Var(&o.budget.Tokens, "tokens", 0, "let the models of the task use at most `n` tokens")
	flags.Int64Var(&o.budget.Requests, "requests", 0, "let the agents of the task make at most `n` requests to models")
	flags.Float64Var(&o.budget.Cost, "cost", 0, "let the models of the task cost at most this `amount`")
	flags.Int64Var(&o.budget.Calls, "calls", 0, "let the agents of the task start at most `n` tool calls")
	flags.BoolVar(&o.detach, "detach", false, "print the task's id and do not wait for its end")
	flags.StringVar(&o.resume, "resume", "", "resume the task with this `id`, or the last one")
	return cmd
}

// runGivenTask runs the task of the command line. If a process serves the organization, the task
// runs there, else in this process.
func runGivenTask(ctx context.Context, c *common, o *runOptions) error {
	spec, err := o.spec(c.getenv(urlVariable) != "")
	if err != nil {
		return err
	}
	return withServing(ctx, c, func(api *client.Client) error {
		return runServed(ctx, c, api, o, spec)
	}, func() (began bool, err error) { return true, runHere(ctx, c, o, spec) })
}

// errDetachAlone returns the error for a task that no process would work on.
func errDetachAlone() error {
	return usageError{errors.New("--detach needs a process that works on the task: start \"rolecall serve\" first")}
}

// runHere runs or resumes a task in this process.
func runHere(ctx context.Context, c *common, o *runOptions, spec org.TaskSpec) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if o.detach {
		return errDetachAlone()
	}
	if cfg == nil && o.resume == "" && suggestFile("") != "" {
		return errNoConfig("run")
	}
	if known, err := hasData(c.data); err != nil || !known && o.resume != "" {
		return cmp.Or(err, errNoOrganization(c.data))
	}
	return withSession(ctx, c, sessionOptions{}, func(ctx context.Context, s *session) error {
		before := s.LastSeq()
		id, err := s.startOrResume(ctx, c, o, spec, cfg)
		if err != nil {
			return c.startError(err)
		}
		return s.followTask(ctx, c, id, before)
	})
}

// startError returns the error of starting a task, in terms of the flags.
func (c *common) startError(err error) error {
	switch errcode.CodeOf(err) {
	case errcode.GroupNotFound:
		text := "--group: " + strings.TrimPrefix(errcode.Message(err), "start a task: ")
		return usageError{errors.New(textutil.AddHint(text, fmt.Sprintf("%q lists them", "rolecall group list"+c.fileFlags()+c.dataFlag())))}
	case errcode.InvalidArguments:
		return usageError{err}
	case errcode.WorkspaceNotBound:
		return usageError{errors.New("--workspace: " + strings.TrimPrefix(errcode.Message(err), "start a task: ") + "; name a directory, or a workspace of the configuration")}
	}
	return err
}

// startOrResume starts a task or resumes the one of --resume, and returns its id.
func (s *session) startOrResume(ctx context.Context, c *common, o *runOptions, spec org.TaskSpec, cfg *config.Config) (identity.TaskID, error) {
	if o.resume != "" {
		id, err := s.findTaskID(ctx, o.resume)
		if err != nil {
			return "", err
		}
		s.printContinueHint(ctx, c, id)
		return id, s.ResumeTask(ctx, id, cfg)
	}
	api, err := s.Client()
	if err != nil {
		return "", err
	}
	if spec.Role, err = resolveRole(ctx, api, spec.Role); err != nil {
		return "", err
	}
	if err := checkTaskRole(ctx, c, api, cfg, spec.Role); err != nil {
		return "", err
	}
	return s.StartTask(ctx, spec, cfg)
}

// printContinueHint says on stderr which command lets a task go on that --resume does not continue.
func (s *session) printContinueHint(ctx context.Context, c *common, id identity.TaskID) {
	task, err := s.Runtime.TaskRecord(ctx, id) // ResumeTask reports an error
	if err == nil && (task.Status == org.Failed || task.Status == org.Cancelled) {
		fmt.Fprintf(c.err, "~ the task is %s; let it go on with: %s task retry %s%s%s\n", task.Status, programName(), id, c.fileFlags(), c.dataFlag())
	}
}

// findTaskID returns the id of the task that a reference names, which may be unknown.
func (s *session) findTaskID(ctx context.Context, ref string) (identity.TaskID, error) {
	api, err := s.Client()
	if err != nil {
		return "", err
	}
	id, err := resolveTask(ctx, api, ref)
	return identity.TaskID(id), err
}

// loadConfig reads the configuration of -f; nil without -f.
func loadConfig(c *common) (*config.Config, error) {
	if len(c.files) == 0 {
		return nil, nil
	}
	return config.LoadFiles(c.files, c.env)
}

// spec converts the flags to a task. remote reports whether a gateway runs it.
func (o *runOptions) spec(remote bool) (org.TaskSpec, error) {
	if o.timed && o.timeout <= 0 {
		return org.TaskSpec{}, usageError{fmt.Errorf("--timeout %v is not positive; omit it for no limit", o.timeout)}
	}
	input, err := parseInputs(o.inputs)
	if err != nil {
		return org.TaskSpec{}, err
	}
	budget, ok := o.budget.Allowance()
	if !ok {
		return org.TaskSpec{}, usageError{errors.New("--tokens, --requests, --cost and --calls are positive amounts; a cost has at most 9 decimals")}
	}
	spec := org.TaskSpec{Text: o.text, Budget: budget, Caller: identity.ByOperator("cli"), Role: o.role, State: o.state, Input: input, Timeout: o.timeout, Ask: o.ask}
	if o.schema != "" {
		if spec.Schema, err = readSchema(o.schema); err != nil {
			return spec, err
		}
	}
	if spec.Files, err = readTaskFiles(o.images, o.attached); err != nil {
		return spec, err
	}
	if spec.Role == org.RootRole && !o.ask {
		spec.Role = "" // it is the default, and has no role record
	}
	if o.groups != nil {
		set := toolgroups.SetOfNames(o.groups...)
		spec.Groups = &set
	}
	return spec, setTaskWorkspace(&spec, o.workspace, remote)
}

// readSchema reads the file of a flag --result, the JSON schema of a result.
func readSchema(path string) (json.RawMessage, error) {
	schema, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("--result: %w", err)}
	}
	if !json.Valid(schema) {
		return nil, usageError{fmt.Errorf("--result: %s is not JSON", path)}
	}
	if problem := org.ResultProblem(schema); problem != "" {
		return nil, usageError{fmt.Errorf("--result: the schema in %s: %s", path, problem)}
	}
	return schema, nil
}

// parseInputs returns the inputs NAME=JSON as one JSON object; nil if there are none.
func parseInputs(inputs []string) (json.RawMessage, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	object := map[string]json.RawMessage{}
	for _, text := range inputs {
		name, value, ok := strings.Cut(text, "=")
		switch _, twice := object[name]; {
		case !ok || name == "":
			return nil, usageError{fmt.Errorf("--input %.60q is not NAME=JSON", text)}
		case twice:
			return nil, usageError{fmt.Errorf("--input %s is given twice", name)}
		case !json.Valid([]byte(value)):
			return nil, usageError{fmt.Errorf("--input %s: %.60q is not JSON; a text is written %s", name, value, quoteWord(name+"="+strconv.Quote(value)))}
		}
		object[name] = json.RawMessage(value)
	}
	return json.Marshal(object)
}

// followTask shows the events of a task after event before, waits for its end, and prints the
// result.
func (s *session) followTask(ctx context.Context, c *common, id identity.TaskID, before uint64) error {
	fmt.Fprintf(c.err, "task %s\n", id)
	if err := s.printLimitsOf(ctx, c, id); err != nil && ctx.Err() == nil {
		return err
	}
	s.printNotes()
	err := s.showEvents(ctx, c, id, before)
	if err != nil && !persist.IsClosed(err) {
		return err
	}
	var task org.Task
	if err == nil {
		task, err = s.Runtime.WaitTask(ctx, id)
	}
	if err != nil {
		return s.reportStopped(ctx, c, id, err)
	}
	if u, err := s.Runtime.TaskUsage(ctx, id); err == nil && s.CountsTokens() {
		printUsage(c, u)
	}
	if task.Status == org.Paused {
		return c.reportPaused(id, *task.Pause, c.fileFlags())
	}
	return printResult(c, org.TaskEnd{Status: task.Status, Result: task.Result, Incomplete: task.Incomplete, Error: task.Error})
}

// reportPaused prints how to let a paused task go on, and returns the error of a command that
// waited for its end. The last event says why it is paused. files are the flags that name
// the configuration. Without them the task keeps the configuration that is recorded with it.
func (c *common) reportPaused(id identity.TaskID, why org.TaskPause, files string) error {
	more, hint := "", ""
	if why.Code == errcode.BudgetExceeded {
		more, hint = " --tokens 100000", " (or --cost, or --calls: more of what is spent)"
	}
	fmt.Fprintf(c.err, "rolecall: the task is paused and nothing is lost; let it go on with: %s%s%s%s\n", continueCommand(id, why, more), files, c.dataFlag(), hint)
	return errReported
}

// continueCommand returns the command that lets a paused task go on. more are flags of a retry.
func continueCommand(id identity.TaskID, why org.TaskPause, more string) string {
	if why.Code == errcode.Paused {
		return fmt.Sprintf("%s resume %s", programName(), id)
	}
	return fmt.Sprintf("%s task retry %s%s", programName(), id, more)
}

// pauseText says why a task is paused.
func pauseText(p org.TaskPause) string {
	if p.Code != errcode.Paused {
		return taskErrorText(p.TaskError)
	}
	text := "by " + cmp.Or(p.By, "the operator")
	if p.Message != "" {
		text += ": " + p.Message
	}
	return text
}

// printNotes prints which models and sources cannot be used.
func (s *session) printNotes() {
	for _, note := range s.ListNotes() {
		fmt.Fprintln(s.notices, "~ "+textutil.Sanitize(note))
	}
}

// printUsage prints the tokens that a task has used, if its models counted any. It is not
// called for a recording, which reports the usage of an earlier run.
func printUsage(c *common, u model.TokenUsage) {
	if u.Input+u.Output == 0 {
		return
	}
	line := fmt.Sprintf("used %d tokens, %d of them output", u.Input+u.Output, u.Output)
	if u.Estimated {
		line += ", partly estimated"
	}
	if u.Cost > 0 {
		line += "; cost " + costText(u)
	}
	fmt.Fprintln(c.err, line)
}

// showEvents prints the events of a task until it ends, it is paused, or ctx ends. An earlier process has shown
// the events up to before, so the view only learns from them, except for the result.
func (s *session) showEvents(ctx context.Context, c *common, id identity.TaskID, before uint64) error {
	task, err := s.Runtime.TaskRecord(ctx, id)
	if err != nil {
		return err
	}
	view := newView(c, s.screen)
	defer view.close()
	questions := s.questioner(c, id)
	for e, err := range s.Runtime.WatchTask(ctx, id, task.FirstSeq) {
		if err != nil {
			return fmt.Errorf("follow task %s: %w", id, err)
		}
		stops := s.Runtime.EndsTask(e) || s.isPausedBy(e)
		if e.Seq > 0 && e.Seq <= before && !stops {
			view.learn(e)
			continue
		}
		if err := view.show(e); err != nil || stops {
			return err
		}
		if err := questions.handle(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// questioner returns what answers the questions of a task that this process runs.
func (s *session) questioner(c *common, id identity.TaskID) *questioner {
	q := &questioner{out: s.screen}
	q.isOpen = func(_ context.Context, question string) (bool, error) {
		return slices.ContainsFunc(s.Runtime.ListQuestions(id), func(open runtime.Question) bool { return open.ID == question }), nil
	}
	q.answer = func(_ context.Context, question string, a tool.Answer) error {
		return s.Runtime.AnswerQuestion(identity.ByOperator("cli"), id, question, a)
	}
	if !c.json {
		q.setPerson(c.in, s.screen)
	}
	return q
}

// isPausedBy reports whether an event paused its task, which was not retried since.
func (s *session) isPausedBy(e journal.Event) bool {
	if _, paused := e.Body.(journal.TaskPaused); !paused {
		return false
	}
	task, ok := s.Runtime.Org().TaskByID(e.Task)
	return ok && task.Status == org.Paused
}

// reportStopped handles an error of followTask: if ctx or the store has ended, it prints how to
// resume the task.
func (s *session) reportStopped(ctx context.Context, c *common, id identity.TaskID, err error) error {
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
var plainWord = textutil.LazyPattern(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoteWord returns a word in the form that a shell needs.
func quoteWord(word string) string {
	if plainWord().MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// printResult prints the result of a task. With --json the last event contains it. It returns
// an error if the task has failed, or if its result is incomplete.
func printResult(c *common, end org.TaskEnd) error {
	if end.Status != org.Done {
		if !c.json && end.Error != nil {
			text := taskErrorText(*end.Error)
			if end.Status != org.Cancelled {
				text = fmt.Sprintf("task %s: %s", end.Status, text)
			}
			fmt.Fprintln(c.err, "rolecall:", textutil.Sanitize(text))
		}
		return errReported
	}
	if !c.json {
		if err := printText(c, resultText(end.Result)); err != nil {
			return err
		}
	}
	if end.Incomplete != "" {
		fmt.Fprintf(c.err, "rolecall: the result is incomplete: %s\n", stopText(end.Incomplete))
		return errReported
	}
	return nil
}

// printText prints a text with a line break at its end. It sanitizes the text for a terminal
// only.
func printText(c *common, text string) error {
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if isTerminal(c.out) {
		text = textutil.SanitizeLines(text)
	}
	_, err := io.WriteString(c.out, text)
	return err
}
