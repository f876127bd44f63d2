package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// canOptions are the flags of can.
type canOptions struct {
	role, agent, caller, state string
	groups                     []string
	who, why                   bool
	diff                       uint64
	since                      *uint64 // diff, nil if it is not given
}

const canHelp = `Check whether a call of TOOL would be allowed now, and which rule decides. --role
checks for an agent of that role directly below root, --agent for an existing agent.
--caller checks for an external caller in its present workflow state: the name of a
token, the name of a user that has called, or USER@ROLE for a user in a role.
--state checks in a workflow state, and --group for a task with these tool groups (see
"rolecall run --help"). --who lists every role and agent that can call the tool, and
roles whose callers start tasks that can (role create --tasks-as). The
holder of a role's token (ROLECALL_TOKEN) does not need to name the role. Without TOOL,
list all tools, with the decision and the rule for each.

--why lists every limit that applies to the tool, and whether it allows the tool: what
the role can use, what the creators of roles and the parents of agents can grant, the
groups and the caller of the task, and workflow states. The first limit that denies
decides. It also lists the bounds on arguments that each of them sets: all must hold.

--diff lists the tools that the role gained and lost since an epoch. The epoch is
printed by this command, and events have it: "rolecall log --json" shows them.

ARGS are arguments of a call, as a JSON object. They are compared with the bounds on the
role and on all above it, not with the schema of the tool.

The command prints "allowed" and exits with 0, or prints "denied: CODE: reason" and
exits with 1. A line "approval" says that the call waits until people approve it; without
ARGS, that it may wait. Unknown roles, agents and tools are denied. If the tool requires a token
of an auth service, the output says so: callers of the role may have one, agents
never do.`

func newCanCommand(c *common) *cobra.Command {
	o := &canOptions{}
	cmd := &cobra.Command{
		Use:   "can [--role R | --agent A | --caller U | --who] [TOOL [ARGS]]",
		Short: "Check whether a tool call would be allowed",
		Long:  canHelp,
		Example: `  rolecall can --role analyst
  rolecall can --role analyst read_file
  rolecall can --role analyst read_file '{"path": "reports/may.txt"}'
  rolecall can --role analyst run_command --group workspace
  rolecall can --agent 5c8c53b4 send_message
  rolecall can --agent 5c8c53b4 --why write_file
  rolecall can --role analyst --diff 41
  rolecall can --caller ci
  rolecall can --caller ann@reader read_file
  rolecall can --who run_javascript`,
		Args: canArgs(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("diff") {
				o.since = &o.diff
			}
			q, err := o.question(args, c.getenv(tokenVariable) != "")
			if err != nil {
				return err
			}
			return withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
				return answerQuestion(ctx, c, api, q)
			})(cmd, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *canOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.role, "role", "", "check for this `role`, by id or name")
	flags.StringVar(&o.agent, "agent", "", "check for this `agent`, by id or role name")
	flags.StringVar(&o.caller, "caller", "", "check for this external `caller`: the name of a token or a user, or USER@ROLE")
	flags.BoolVar(&o.why, "why", false, "list the limits that apply to the tool")
	flags.Uint64Var(&o.diff, "diff", 0, "list what the role gained and lost since this `epoch`")
	flags.BoolVar(&o.who, "who", false, "list the roles and agents that can call the tool")
	flags.StringVar(&o.state, "state", "", "check in this workflow `state`; default: the agent's or the caller's own")
	flags.StringSliceVar(&o.groups, "group", nil, "check for a task with run --group of this tool `group`; can be repeated")
}

// answerQuestion answers a question in the form that it asks for.
func answerQuestion(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	if q.Who != "" {
		return printWho(ctx, c, api, q)
	}
	q, err := resolveSubject(ctx, api, q)
	if err == nil && q.Agent != "" {
		err = noteEndedTask(ctx, c, api, q.Agent)
	}
	switch {
	case err != nil:
		return err
	case q.Diff != nil:
		return printCanDiff(ctx, c, api, q)
	case q.Tool == "":
		return printCanTable(ctx, c, api, q)
	}
	return runCan(ctx, c, api, q)
}

// canArgs requires one tool name or, without --who, none. It explains how to name the role.
func canArgs(o *canOptions) cobra.PositionalArgs {
	one := exactArgs(1, "one tool name")
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !o.who && !o.why || len(args) == 2 && !o.who && strings.HasPrefix(args[1], "{") {
			return nil
		}
		err := one(cmd, args)
		if err != nil && len(args) == 2 && o.role == "" && o.agent == "" && o.caller == "" && !o.who {
			return usageError{fmt.Errorf("%w; name a role with --role, as in %q", err, "rolecall can --role "+quoteWord(args[0])+" "+quoteWord(args[1]))}
		}
		return err
	}
}

// resolveSubject replaces the beginning of an id in a question by the id.
func resolveSubject(ctx context.Context, api *client.Client, q client.Question) (client.Question, error) {
	var err error
	if q.Role != "" {
		q.Role, err = resolveRole(ctx, api, q.Role)
	}
	if q.Agent != "" {
		q.Agent, err = resolveAgent(ctx, api, q.Agent)
	}
	return q, err
}

// errNoSubject is the error for a check without a role or agent.
var errNoSubject = usageError{errors.New("specify one of --role ROLE, --agent AGENT, --caller USER and --who; only the holder of a role's token can omit them")}

// question returns the query for the gateway. token reports whether the caller has a token,
// which may imply a role.
func (o *canOptions) question(args []string, token bool) (client.Question, error) {
	q := client.Question{Role: o.role, Agent: o.agent, Caller: o.caller, Why: o.why, State: o.state}
	if len(args) > 0 {
		q.Tool = args[0]
	}
	if len(args) > 1 {
		q.Args = json.RawMessage(args[1])
		if !json.Valid(q.Args) {
			return q, usageError{fmt.Errorf("the arguments %s are not JSON", textutil.OneLine(args[1], 80))}
		}
	}
	n := 0
	for _, given := range []bool{o.role != "", o.agent != "", o.caller != "", o.who} {
		if given {
			n++
		}
	}
	if n > 1 || n == 0 && !token {
		return q, errNoSubject
	}
	if o.who && o.why {
		return q, usageError{errors.New("--who and --why are mutually exclusive")}
	}
	if q.Diff = o.since; q.Diff != nil && (q.Role == "" || q.Tool != "" || q.State != "" || o.groups != nil || q.Why) {
		return q, usageError{errors.New("--diff needs --role, and no tool and no other flag")}
	}
	if o.who {
		q.Who, q.Tool = q.Tool, ""
	}
	if o.groups != nil {
		set := toolgroups.SetOfNames(o.groups...)
		q.Groups = &set
	}
	return q, nil
}

// subjectError returns the error of a question, a usage error for an unknown state. One that
// names no subject was sent with an operator's token.
func subjectError(q client.Question, err error) error {
	if e, ok := errors.AsType[*errcode.Error](err); ok && e.Code == errcode.InvalidArguments && e.Details["field"] == "state" {
		return usageError{errors.New("--state: " + e.Message)}
	}
	if errcode.CodeOf(err) == errcode.InvalidArguments && q.Role == "" && q.Agent == "" && q.Caller == "" && q.Who == "" {
		return errNoSubject
	}
	return err
}

// printCanTable lists all tools with the decision and the rule for each.
func printCanTable(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	list, err := api.CheckTools(ctx, q)
	if err != nil {
		return subjectError(q, err)
	}
	if c.json {
		return printJSON(c.out, list)
	}
	hint, err := serverHint(ctx, c, api)
	if err != nil {
		return err
	}
	if hint != "" {
		fmt.Fprintln(c.err, "~ "+textutil.Sanitize(hint))
	}
	rows := table{{"TOOL", "ALLOWED", "GROUP", "RULE"}}
	for _, v := range list {
		rows = append(rows, []string{v.Tool, allowedText(v.Allowed, v.Waits), string(v.Group), v.Rule})
	}
	return rows.print(c.out)
}

// allowedText returns whether a tool may be called, and whether people approve calls first.
func allowedText(allowed, waits bool) string {
	switch {
	case !allowed:
		return "no"
	case waits:
		return "with approval"
	}
	return "yes"
}

// printCanDiff lists the tools that a role gained and lost since an epoch.
func printCanDiff(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	d, err := api.DiffTools(ctx, q)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, d)
	}
	since := fmt.Sprintf("role %s, epoch %d to %d", textutil.Sanitize(d.Name), d.From, d.Epoch)
	if d.From != *q.Diff {
		fmt.Fprintf(c.err, "epoch %d was not observed, because a process was starting then; epoch %d is the last one before it\n", *q.Diff, d.From)
	}
	if d.Created {
		since += ": it was created since"
	}
	rows := table{}
	for _, name := range d.Gains {
		rows = append(rows, []string{"gained", name})
	}
	for _, name := range d.Loses {
		rows = append(rows, []string{"lost", name})
	}
	if len(rows) == 0 {
		rows = table{{"no tool was gained or lost"}}
	}
	if _, err := fmt.Fprintln(c.out, since); err != nil {
		return err
	}
	return rows.print(c.out)
}

// verdictView is a verdict, and what the call needs in addition to the permission.
type verdictView struct {
	client.Verdict
	Needs string `json:"needs,omitempty"`
}

func runCan(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	v, err := api.CheckAccess(ctx, q)
	if err != nil {
		return subjectError(q, err)
	}
	if v.Reason, err = addServerHint(ctx, c, api, v.Code, v.Reason); err != nil {
		return err
	}
	shown := verdictView{Verdict: v}
	if v.Allowed {
		if shown.Needs, err = authNeeds(ctx, api, v.Tool); err != nil {
			return err
		}
	}
	if shown.Needs != "" && q.Agent != "" {
		shown.Allowed, shown.Code, shown.Rule = false, errcode.Unauthenticated, "agents have no tokens"
		shown.Reason = "tool " + v.Tool + " requires " + shown.Needs + ", which agents never have"
	}
	if c.json {
		err = printJSON(c.out, shown)
	} else {
		_, err = io.WriteString(c.out, verdictText(shown))
		if err == nil && len(shown.Limits) > 0 {
			err = limitTable(shown.Limits).printBelow(c.out)
		}
	}
	if err == nil && !shown.Allowed {
		return errReported
	}
	return err
}

// authNeeds describes the tokens and secure arguments that a tool requires of its caller
// and that agents never have; "" if it requires none.
func authNeeds(ctx context.Context, api *client.Client, name string) (string, error) {
	t, err := api.FindTool(ctx, name)
	if err != nil || t.Auth == nil {
		return "", err
	}
	var list []string
	if tokens := authText(t.Auth); tokens != "" {
		list = append(list, "a token of "+tokens)
	}
	if t.Auth.SecureArgs {
		list = append(list, "secure arguments")
	}
	return strings.Join(list, ", and "), nil
}

// verdictText formats a verdict, with the decision on the first line.
func verdictText(v verdictView) string {
	decision := "allowed"
	switch {
	case !v.Allowed:
		decision = fmt.Sprintf("denied: %s: %s", v.Code, textutil.Sanitize(v.Reason))
	case v.Needs != "":
		decision = needsText(v.Needs)
	}
	state := ""
	if v.State != "" {
		state = "state: " + textutil.Sanitize(v.State) + "\n"
	}
	return fmt.Sprintf("%s\ngroup: %s\nepoch: %d\n%srule: %s\n%s", decision, orDash(textutil.Sanitize(string(v.Group))), v.Epoch, state, textutil.Sanitize(v.Rule), waitsText(v.Verdict))
}

// waitsText says whose approval a call waits for, "" if it does not wait.
func waitsText(v client.Verdict) string {
	if v.Waits && len(v.Approval) == 0 { // the question of a caller
		return "approval: people approve the call first\n"
	}
	text := ""
	for _, r := range v.Approval {
		text += "approval: " + textutil.Sanitize(r.String()) + "\n"
	}
	return text
}

// limitTable lists the limits on a call and marks the limit that decides.
func limitTable(limits []client.Limit) table {
	rows := table{{"ALLOWS", "LIMIT", "ROLE", "RULE"}}
	for _, l := range limits {
		allows := "yes"
		switch {
		case l.Decides:
			allows = "no, decides"
		case !l.Allows:
			allows = "no"
		}
		rule := l.Rule
		if l.Bound != "" {
			rule += "; arguments within " + textutil.TruncateWidth(textutil.Sanitize(l.Bound), 300)
		}
		rows = append(rows, []string{allows, string(l.Kind), orDash(l.Role), rule})
	}
	return rows
}

func needsText(needs string) string {
	return "allowed only with " + textutil.Sanitize(needs) + ", which agents never have"
}

// holderView lists the roles and agents that can call a tool, and what a call needs in
// addition.
type holderView struct {
	client.Holders
	Needs string `json:"needs,omitempty"`
}

func printWho(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	h, err := api.ListHolders(ctx, q)
	if err = subjectError(q, err); err == nil {
		h.Reason, err = addServerHint(ctx, c, api, h.Code, h.Reason)
	}
	shown := holderView{Holders: h}
	if err == nil && h.Code == "" {
		shown.Needs, err = authNeeds(ctx, api, h.Tool)
	}
	if shown.Needs != "" {
		shown.Agents, shown.Tasks = shown.Agents[:0], shown.Tasks[:0]
	}
	switch {
	case err != nil:
		return err
	case c.json:
		err = printJSON(c.out, shown)
	case h.Code != "":
		_, err = fmt.Fprintf(c.out, "denied: %s: %s\n", h.Code, textutil.Sanitize(h.Reason))
	default:
		err = holderTable(shown.Holders).print(c.out)
		if shown.Needs != "" {
			fmt.Fprintln(c.err, needsText(shown.Needs))
		}
	}
	if err == nil && h.Code != "" {
		return errReported
	}
	return err
}

func holderTable(h client.Holders) table {
	rows := table{{"KIND", "NAME", "ID", "TASK", "ALLOWED"}}
	for _, r := range h.Roles {
		rows = append(rows, []string{"role", r.Name, string(r.ID), "-", allowedText(true, r.Waits)})
	}
	for _, t := range h.Tasks {
		rows = append(rows, []string{"tasks", callerWithRole(t.Name, t.As), string(t.ID), "-", allowedText(true, t.Waits)})
	}
	for _, a := range h.Agents {
		rows = append(rows, []string{"agent", cmp.Or(a.Name, a.Role), string(a.ID), string(a.Task), allowedText(true, a.Waits)})
	}
	return rows
}
