package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

func newTaskCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "task",
		Short: "List, show, follow, retry and cancel tasks",
		Long: `A task is a piece of work that a caller sent to the organization. A task is running, or
waiting for a delayed message, while a process works on it. It is interrupted if no
process does: "rolecall run --resume ID" continues it. It is paused if only the operator
can help, for example by another key, or if a person has paused it. "rolecall resume ID" ends
the pause of a person. "rolecall task retry ID" lets a task go on that an error has paused,
that has failed or was cancelled.

A task is named by its id, or by the beginning of its id if that is unique and has at
least 4 characters. "last" is the newest task.`,
		Example: "  rolecall task list --status running\n  rolecall task show last",
	}, newTaskListCommand(c), newTaskShowCommand(c), newTaskFollowCommand(c), newTaskRetryCommand(c), newTaskCancelCommand(c))
}

func newTaskListCommand(c *common) *cobra.Command {
	var status, since string
	limit := &taskLimit{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tasks, newest first",
		Example: "  rolecall task list\n  rolecall task list --since 24h --status failed --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runTaskList(ctx, c, api, client.TaskQuery{Status: org.TaskStatus(status), Since: since}, limit)
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "only tasks started after this `time`: a duration such as 2h, or 2026-01-31T08:00:00Z")
	cmd.Flags().StringVar(&status, "status", "", "only tasks with this `status`: running, waiting, paused, interrupted, done, failed or cancelled")
	limit.addFlag(cmd)
	return cmd
}

func runTaskList(ctx context.Context, c *common, api *client.Client, q client.TaskQuery, limit *taskLimit) error {
	tasks, err := limit.listTasks(ctx, c, api, q)
	if err != nil {
		return err
	}
	head := []string{"ID", "STATUS", "STARTED", "ENDED", "TEXT"}
	return printList(c.out, c.json, tasks, head, func(t client.Task) []string {
		return []string{string(t.ID), string(t.Status), formatTime(t.CreatedAt), orDash(formatTime(t.EndedAt)), textutil.TruncateWidth(t.Text, maxCell)}
	})
}

// defaultTaskLimit is the number of tasks that a person is shown without --limit.
const defaultTaskLimit = 100

// taskLimit is the flag --limit of commands that show tasks.
type taskLimit struct {
	n     int
	flags *pflag.FlagSet
}

// addFlag adds the flag to a command.
func (l *taskLimit) addFlag(cmd *cobra.Command) {
	l.flags = cmd.Flags()
	l.flags.IntVar(&l.n, "limit", defaultTaskLimit, "show the newest `n` tasks; 0 shows all, which is the default with --json")
}

// listTasks lists the tasks of a query up to the limit. It notes on stderr if there are more.
func (l *taskLimit) listTasks(ctx context.Context, c *common, api *client.Client, q client.TaskQuery) (iter.Seq2[client.Task, error], error) {
	limit := l.n
	switch {
	case limit < 0:
		return nil, usageError{fmt.Errorf("--limit %d is out of range; use 0 for all tasks", limit)}
	case c.json && !l.flags.Changed("limit"):
		limit = 0
	}
	if limit == 0 {
		return api.QueryTasks(ctx, q), nil
	}
	q.Limit = max(limit, limit+1) // the next one is noticed, not shown
	return func(yield func(client.Task, error) bool) {
		n := 0
		for t, err := range api.QueryTasks(ctx, q) {
			if n++; n > limit {
				fmt.Fprintf(c.err, "only the newest %s shown; --limit 0 shows all\n", counted(limit, "task is", "tasks are"))
				return
			}
			if !yield(t, err) {
				return
			}
		}
	}, nil
}

func newTaskShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show TASK",
		Short:   "Show a task, its result and what its agents have used",
		Example: "  rolecall task show last\n  rolecall task show 01a1fded-ba9c --json",
		Args:    exactArgs(1, `one task, by id or as "last"`),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runTaskShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runTaskShow(ctx context.Context, out io.Writer, api *client.Client, id string, asJSON bool) error {
	t, err := findTask(ctx, api, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, t)
	}
	if err := taskFields(t).print(out); err != nil {
		return err
	}
	if err := agentUsage(t).printBelow(out); err != nil || len(t.ByModel) == 0 {
		return err
	}
	return modelUsage(t).printBelow(out)
}

// agentUsage returns what each agent of a task has used.
func agentUsage(t client.Task) table {
	rows := table{{"NAME", "AGENT", "STATUS", "CALLS", "DENIED", "TOKENS", "COST"}}
	for _, a := range t.Agents {
		rows = append(rows, []string{
			cmp.Or(a.Name, a.Role), string(a.ID), string(a.Status), strconv.Itoa(a.Calls.Total), strconv.Itoa(a.Calls.Denied), orDash(usageText(a.Usage)), orDash(costText(a.Usage)),
		})
	}
	return rows
}

// modelUsage returns what each model of a task has used.
func modelUsage(t client.Task) table {
	rows := table{{"MODEL", "TOKENS", "COST"}}
	for _, m := range t.ByModel {
		rows = append(rows, []string{orDash(m.Model), orDash(usageText(m.Usage)), orDash(costText(m.Usage))})
	}
	return rows
}

// costText formats the cost of models with its currency; "" if they cost nothing.
func costText(u model.TokenUsage) string {
	if u.Cost == 0 {
		return ""
	}
	return strings.TrimSpace(u.Cost.String() + " " + textutil.Sanitize(u.Currency))
}

func taskFields(t client.Task) fields {
	f := fields{
		{"id", string(t.ID)}, {"status", string(t.Status)}, {"caller", callerWithRole(t.Caller, t.As)}, {"agent", string(t.Agent)}, {"state", t.State},
		{"started", formatTime(t.CreatedAt)}, {"ended", formatTime(t.EndedAt)},
	}
	if !t.Groups.IsAll() {
		f = append(f, [2]string{"restricted to", orDash(joinNames(t.Groups.GroupIDs()))})
	}
	if t.Workspace != "" {
		mode := ""
		if t.ReadOnly {
			mode = " (read only)"
		}
		f = append(f, [2]string{"workspace", t.Workspace + mode})
	}
	if t.Elapsed > 0 {
		f = append(f, [2]string{"elapsed", (time.Duration(t.Elapsed) * time.Millisecond).String()})
	}
	f = append(f, [2]string{"calls", fmt.Sprintf("%d, %d denied", t.Calls.Total, t.Calls.Denied)}, [2]string{"tokens", usageText(t.Usage)})
	if cost := costText(t.Usage); cost != "" {
		f = append(f, [2]string{"cost", cost})
		if t.Usage.Currency == "" {
			f = append(f, [2]string{"unit", "the currency of the configured prices"})
		}
	}
	for _, b := range t.Budgets {
		if b.Agent != "" || b.Warned {
			f = append(f, [2]string{"budget", budgetText(b)})
		}
	}
	if len(t.Suspended) > 0 {
		f = append(f, [2]string{"paused roles", joinNames(t.Suspended)})
	}
	if t.Reason != nil {
		f = append(f, [2]string{"paused", pauseText(*t.Reason)})
	}
	f = append(f, [2]string{"text", t.Text}, [2]string{"result", resultText(t.Result)})
	if t.Incomplete != "" {
		f = append(f, [2]string{"incomplete", string(t.Incomplete) + ": " + stopText(t.Incomplete)})
	}
	if t.Error != nil {
		f = append(f, [2]string{"error", taskErrorText(*t.Error)})
	}
	return f
}

// budgetText says what was used of a limit.
func budgetText(b client.BudgetUse) string {
	owner := "the task"
	if b.Agent != "" {
		owner = cmp.Or(b.Name, string(b.Agent))
	}
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	text := fmt.Sprintf("%s has used %s of %s %s", owner, number(b.Used), number(b.Limit), b.Quantity)
	if b.Reserved > 0 {
		text += ", and " + number(b.Reserved) + " are reserved for its agents"
	}
	if b.Warned {
		text += " (warned)"
	}
	return text
}

// taskErrorText returns the code and the message of a task's error. Some messages begin
// with the words of the code, which are left out.
func taskErrorText(e org.TaskError) string {
	words := strings.ReplaceAll(string(e.Code), "_", " ") + ": "
	return string(e.Code) + ": " + strings.TrimPrefix(e.Message, words)
}

// usageText formats the tokens that models have used; "" for none.
func usageText(u model.TokenUsage) string {
	if u.Input+u.Output == 0 {
		return ""
	}
	text := fmt.Sprintf("%d in (%d cached), %d out", u.Input, u.Cached, u.Output)
	if u.Estimated {
		text += ", partly estimated"
	}
	return text
}

// resultText returns a result as run prints it: a string as text, anything else as JSON.
func resultText(result json.RawMessage) string {
	var text string
	if json.Unmarshal(result, &text) != nil {
		return jsonText(result)
	}
	return text
}

func newTaskFollowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "follow TASK",
		Short: "Show what a task does until it ends, and its result",
		Long: `Show the events of a task on stderr, from its start until it ends, and print the result on
stdout as run does. The task may have been started by another user. If the process that
works on it restarts, follow connects again.`,
		Example: "  rolecall task follow last",
		Args:    exactArgs(1, `one task, by id or as "last"`),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return followTask(ctx, c, api, args[0])
		}),
	}
}

func newTaskRetryCommand(c *common) *cobra.Command {
	var more client.Budget
	var detach bool
	cmd := &cobra.Command{
		Use:   "retry TASK",
		Short: "Let a paused, failed or cancelled task go on, and wait for its result",
		Long: `Let a task that is paused, has failed or was cancelled go on where it stopped, and wait
for its result as run does. Its agents ask their models again and read the mail that they
have not read. Calls that have an outcome are not repeated. --tokens, --cost, --requests
and --calls let the task use more than its budget.`,
		Example: `  rolecall task retry last
  rolecall task retry 01a1fded-ba9c --tokens 100000`,
		Args: exactArgs(1, `one task, by id or as "last"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTaskRetry(cmd.Context(), c, args[0], more, detach)
		},
	}
	cmd.Flags().Int64Var(&more.Tokens, "tokens", 0, "let the task use `n` more tokens")
	cmd.Flags().Float64Var(&more.Cost, "cost", 0, "let the task cost this `amount` more")
	cmd.Flags().Int64Var(&more.Requests, "requests", 0, "let the task make `n` more requests to models than its limit")
	cmd.Flags().Int64Var(&more.Calls, "calls", 0, "let the task start `n` more tool calls than its budget")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not wait for the task's end")
	return cmd
}

// runTaskRetry retries a task in the process that serves the organization, if there is one,
// else in this process.
func runTaskRetry(ctx context.Context, c *common, ref string, more client.Budget, detach bool) error {
	extra, ok := more.Allowance()
	if !ok {
		return usageError{errors.New("--tokens, --cost, --requests and --calls are positive amounts; a cost has at most 9 decimals")}
	}
	return withServing(ctx, c, func(api *client.Client) error {
		return retryServed(ctx, c, api, ref, more, detach)
	}, func() (began bool, err error) { return true, retryHere(ctx, c, ref, extra, detach) })
}

// retryHere retries a task in this process.
func retryHere(ctx context.Context, c *common, ref string, extra org.ModelAllowance, detach bool) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if detach {
		return errDetachAlone()
	}
	if known, err := hasData(c.data); err != nil || !known {
		return cmp.Or(err, errNoOrganization(c.data))
	}
	return withSession(ctx, c, sessionOptions{}, func(ctx context.Context, s *session) error {
		before := s.LastSeq()
		id, err := s.findTaskID(ctx, ref)
		if err != nil {
			return err
		}
		if err := s.RetryTask(ctx, id, cfg, extra); err != nil {
			return err
		}
		return s.followTask(ctx, c, id, before)
	})
}

// retryServed retries a task in the serving process.
func retryServed(ctx context.Context, c *common, api *client.Client, ref string, more client.Budget, detach bool) error {
	id, err := resolveTask(ctx, api, ref)
	if err != nil {
		return err
	}
	task, err := api.RetryTask(ctx, id, more)
	if err != nil {
		return err
	}
	if detach {
		return printDetached(c, task)
	}
	return followTask(ctx, c, api, string(task.ID))
}

func newTaskCancelCommand(c *common) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "cancel TASK",
		Short: "Cancel a task and stop its agents",
		Long:  "Cancel a task and stop its agents immediately. Cancelling a task that has already ended\nchanges nothing and fails.",
		Example: `  rolecall task cancel last
  rolecall task cancel 01a1fded-ba9c --reason "asked for the wrong day"`,
		Args: exactArgs(1, `one task, by id or as "last"`),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			return runTaskCancel(ctx, c.out, api, args[0], reason, c.json)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason (recorded)")
	return cmd
}

func runTaskCancel(ctx context.Context, out io.Writer, api *client.Client, id, reason string, asJSON bool) error {
	t, err := findTask(ctx, api, id)
	if err != nil {
		return err
	}
	if t.Status.Ended() {
		return taskEndedError(t)
	}
	if t, err = api.CancelTask(ctx, string(t.ID), reason); err != nil {
		return err
	}
	switch {
	case t.Status != org.Cancelled: // it ended meanwhile
		return taskEndedError(t)
	case asJSON:
		return printJSON(out, t)
	}
	_, err = fmt.Fprintf(out, "task %s is %s\n", textutil.Sanitize(string(t.ID)), t.Status)
	return err
}

// taskEndedError returns the error for cancelling a task that has ended.
func taskEndedError(t client.Task) error {
	return fmt.Errorf("cancel task %s: the task has ended (%s)", t.ID, t.Status)
}
