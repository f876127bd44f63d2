package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

func newAgentCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "agent",
		Short: "Ask, list, show, message, abort and terminate agents",
		Long: `An agent is named by its id, by the beginning of its id if that is unique and has at
least 4 characters, by its name in the task such as analyst-1, or by the name of its
role. A name must be unambiguous among the agents of running tasks, or among all agents
if no task runs.`,
		Example: `  rolecall agent tree
  rolecall agent show analyst
  rolecall agent transcript analyst
  rolecall agent send analyst "Look at yesterday too."`,
	}, newAgentAskCommand(c), newAgentListCommand(c), newAgentShowCommand(c), newAgentTreeCommand(c), newAgentTranscriptCommand(c), newAgentAbortCommand(c), newAgentTerminateCommand(c), newAgentSendCommand(c))
}

// agentFilter selects agents.
type agentFilter struct{ task, status string }

func newAgentListCommand(c *common) *cobra.Command {
	o := &agentFilter{}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List agents, oldest first, including terminated ones",
		Example: "  rolecall agent list --status calling\n  rolecall agent list --task last --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runAgentList(ctx, c.out, api, o, c.json)
		}),
	}
	cmd.Flags().StringVar(&o.task, "task", "", "only agents of the task with this `id`, or of the last one")
	cmd.Flags().StringVar(&o.status, "status", "", "only agents with this `status`: starting, thinking, calling, waiting, finished or terminated")
	return cmd
}

func runAgentList(ctx context.Context, out io.Writer, api *client.Client, o *agentFilter, asJSON bool) error {
	task, err := findFilterTask(ctx, api, o.task)
	if err != nil {
		return err
	}
	head := []string{"ID", "NAME", "ROLE", "STATUS", "STATE", "TASK", "PARENT"}
	return printList(out, asJSON, api.ListAgents(ctx, task, org.AgentStatus(o.status)), head, func(a client.Agent) []string {
		return []string{string(a.ID), orDash(a.Name), a.Role, string(a.Status), a.State, string(a.Task), orDash(string(a.Parent))}
	})
}

func newAgentShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show AGENT",
		Short:   "Show an agent, its task brief and the tools it can call now",
		Example: "  rolecall agent show analyst\n  rolecall agent show 5c8c53b4 --json",
		Args:    exactArgs(1, "one agent, by id or role name"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runAgentShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runAgentShow(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	ref, err := resolveAgent(ctx, api, ref)
	if err != nil {
		return err
	}
	a, err := api.FindAgent(ctx, ref)
	if err != nil {
		return err
	}
	return printOne(out, asJSON, a, fields{
		{"id", string(a.ID)}, {"name", a.Name}, {"role", a.Role}, {"role id", string(a.RoleID)}, {"status", string(a.Status)}, {"reason", a.Reason},
		{"state", a.State}, {"task", string(a.Task)}, {"parent", string(a.Parent)}, {"created", formatTime(a.CreatedAt)},
		{"tools", orDash(joinNames(a.Tools))},
		{"objective", a.Brief.Objective}, {"constraints", strings.Join(a.Brief.Constraints, "\n")}, {"inputs", string(a.Brief.Inputs)},
		{"outputs", string(a.Brief.Outputs)}, {"completion", string(a.Brief.CompletionCriteria)},
	})
}

func newAgentTreeCommand(c *common) *cobra.Command {
	o := &agentFilter{}
	limit := &taskLimit{}
	cmd := &cobra.Command{
		Use:   "tree",
		Short: "Show the agent tree",
		Long: `Show which agent spawned which, task by task, newest task first. With --json, print
the list of agents, each with its parent.`,
		Example: "  rolecall agent tree\n  rolecall agent tree --task last",
		Args:    exactArgs(0, "no arguments; name a task with --task"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			tasks, err := treeTasks(ctx, c, api, o.task, limit)
			if err != nil {
				return err
			}
			return runAgentTree(c, tasks)
		}),
	}
	cmd.Flags().StringVar(&o.task, "task", "", "only agents of the task with this `id`, or of the last one")
	limit.addFlag(cmd)
	return cmd
}

// treeTasks lists the newest tasks with their agents, or only the task with an id.
func treeTasks(ctx context.Context, c *common, api *client.Client, id string, limit *taskLimit) (iter.Seq2[client.Task, error], error) {
	if id == "" {
		return limit.listTasks(ctx, c, api, client.TaskQuery{Agents: true})
	}
	task, err := findTask(ctx, api, id) // with its agents
	if err != nil {
		return nil, err
	}
	return func(yield func(client.Task, error) bool) { yield(task, nil) }, nil
}

func runAgentTree(c *common, tasks iter.Seq2[client.Task, error]) error {
	var b strings.Builder
	items := []client.Agent{}
	for t, err := range tasks {
		if err != nil {
			return err
		}
		items = append(items, t.Agents...)
		if rows := treeOf(t.Agents); len(rows) > 0 && !c.json {
			fmt.Fprintf(&b, "task %s  %s  %s\n", textutil.Sanitize(string(t.ID)), t.Status, textutil.TruncateWidth(textutil.Sanitize(t.Text), maxCell))
			if err := rows.print(&b); err != nil {
				return err
			}
		}
	}
	switch {
	case c.json:
		return printJSON(c.out, map[string]any{"items": items})
	case b.Len() == 0:
		fmt.Fprintln(c.err, "there is no agent yet")
	}
	_, err := io.WriteString(c.out, b.String())
	return err
}

// treeOf returns the agents of one task as a tree, parents before children. An agent whose
// parent is not listed is drawn at the top level.
func treeOf(agents []client.Agent) table {
	below := map[identity.AgentID][]client.Agent{}
	known := map[identity.AgentID]bool{}
	for _, a := range agents {
		known[a.ID] = true
	}
	for _, a := range agents {
		parent := a.Parent
		if !known[parent] {
			parent = ""
		}
		below[parent] = append(below[parent], a)
	}
	var rows table
	var draw func(parent identity.AgentID, indent string)
	draw = func(parent identity.AgentID, indent string) {
		for i, a := range below[parent] {
			branch, rest := "├─ ", "│  "
			if i == len(below[parent])-1 {
				branch, rest = "└─ ", "   "
			}
			rows = append(rows, []string{indent + branch + cmp.Or(a.Name, a.Role), string(a.Status), a.State, string(a.ID)})
			draw(a.ID, indent+rest)
		}
	}
	draw("", "")
	return rows
}

func newAgentAbortCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "abort AGENT",
		Short: "Abort the current turn of an agent",
		Long: `Abort the current turn of an agent, with a tool call in progress. The agent waits for its
next message. Aborting the turn of a task's root agent fails the task.`,
		Example: "  rolecall agent abort analyst",
		Args:    exactArgs(1, "one agent, by id or role name"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			return runAgentAbort(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runAgentAbort(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	ref, err := resolveAgent(ctx, api, ref)
	if err != nil {
		return err
	}
	a, err := api.AbortTurn(ctx, ref)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, a)
	}
	_, err = fmt.Fprintf(out, "the turn of agent %s (%s) is aborted\n", textutil.Sanitize(string(a.ID)), textutil.Sanitize(cmp.Or(a.Name, a.Role)))
	return err
}

func newAgentTerminateCommand(c *common) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "terminate AGENT",
		Short: "Terminate an agent and all agents below it",
		Long: `Terminate an agent and all agents below it immediately. Unread messages are lost;
artifacts and files are kept. The root agent of a task ends only with its task: see
"rolecall task cancel".`,
		Example: `  rolecall agent terminate analyst --reason "it loops"`,
		Args:    exactArgs(1, "one agent, by id or role name"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			return runAgentTerminate(ctx, c.out, api, args[0], reason, c.json)
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "reason (recorded)")
	return cmd
}

func runAgentTerminate(ctx context.Context, out io.Writer, api *client.Client, ref, reason string, asJSON bool) error {
	ref, err := resolveAgent(ctx, api, ref)
	if err != nil {
		return err
	}
	a, err := api.TerminateAgent(ctx, ref, reason)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, a)
	}
	_, err = fmt.Fprintf(out, "agent %s (%s) terminated\n", textutil.Sanitize(string(a.ID)), textutil.Sanitize(cmp.Or(a.Name, a.Role)))
	return err
}

// sendOptions are the flags of agent send.
type sendOptions struct {
	payload string
	delay   time.Duration
}

func newAgentSendCommand(c *common) *cobra.Command {
	o := &sendOptions{}
	cmd := &cobra.Command{
		Use:   "send AGENT [TEXT]",
		Short: "Send a message to an agent",
		Long: `Send a message to an agent, as the user. The agent reads it at its next step. If no
process works on its task, the message waits until the task is resumed. TEXT is
sent as {"text": TEXT}; --payload sends any JSON instead.`,
		Example: `  rolecall agent send analyst "Look at yesterday too."
  rolecall agent send analyst --payload '{"approve": true}' --delay 5m`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := o.request(args)
			if err != nil {
				return err
			}
			return withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
				return runAgentSend(ctx, c.out, api, args[0], q, c.json)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&o.payload, "payload", "", "send this `JSON` instead of TEXT")
	cmd.Flags().DurationVar(&o.delay, "delay", 0, "deliver the message after this `duration`")
	return cmd
}

func (o *sendOptions) request(args []string) (client.MessageRequest, error) {
	q := client.MessageRequest{DelayMS: o.delay.Milliseconds()}
	switch {
	case slices.Contains(args, ""):
		return q, usageError{errors.New("agent send takes an agent and a text, and an argument is empty")}
	case o.delay < 0:
		return q, usageError{errors.New("--delay is negative")}
	case len(args) == 2 && o.payload == "":
		q.Text = args[1]
	case len(args) == 1 && json.Valid([]byte(o.payload)):
		q.Payload = json.RawMessage(o.payload)
	case len(args) == 1 && o.payload != "":
		return q, usageError{errors.New("--payload is not JSON; pass plain text as an argument")}
	default:
		return q, usageError{errors.New("agent send takes an agent and either a text, in quotes, or --payload")}
	}
	return q, nil
}

func runAgentSend(ctx context.Context, out io.Writer, api *client.Client, ref string, q client.MessageRequest, asJSON bool) error {
	ref, err := resolveAgent(ctx, api, ref)
	if err != nil {
		return err
	}
	sent, err := api.SendMessage(ctx, ref, q)
	if err != nil {
		return err
	}
	f := fields{{"message", sent.MessageID}}
	if sent.Due != nil {
		f = append(f, [2]string{"due", formatTime(*sent.Due)})
	}
	return printOne(out, asJSON, sent, f)
}
