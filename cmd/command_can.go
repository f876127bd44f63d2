package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/toolgroups"
)

// canOptions are the flags of can.
type canOptions struct {
	role, agent, state string
	groups             []string
	who                bool
}

func newCanCommand(c *common) *cobra.Command {
	o := &canOptions{}
	cmd := &cobra.Command{
		Use:   "can [--role R | --agent A | --who] TOOL",
		Short: "Ask what the gate would say, and why",
		Long: `Ask what the gate would say if an agent of a role, or an agent, called a tool
now, and which rule decides. A role is judged as if its agents stood directly
below root; --state and --group ask in a workflow state and under the
narrowing of a task. With --who it lists every role and agent that may call
the tool. The holder of a role's token (ROLECALL_TOKEN) need not name its role.

It prints "allowed", or "denied: CODE: reason", and exits 0 or 1. A role, an
agent or a tool that nobody knows is a denial. Of a tool that asks for a token of
an auth service it says so: callers of the role may have one, agents never.`,
		Example: `  rolecall can --role analyst read_file
  rolecall can --role analyst run_command --group workspace
  rolecall can --agent 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 send_message
  rolecall can --who run_javascript`,
		Args: exactly(1, "one tool name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q, err := o.question(args[0], c.variable(tokenVariable) != "")
			if err != nil {
				return err
			}
			return withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
				if o.who {
					return whoFunc(ctx, c, api, q)
				}
				return canFunc(ctx, c, api, q)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.role, "role", "", "ask for the `role` of this id or name")
	flags.StringVar(&o.agent, "agent", "", "ask for the `agent` of this id or role name")
	flags.BoolVar(&o.who, "who", false, "list who may call the tool")
	flags.StringVar(&o.state, "state", "", "ask in this workflow `state`; an agent's own when left out")
	flags.StringSliceVar(&o.groups, "group", nil, "ask under a narrowing to this tool `group`; may be given more than once")
	return cmd
}

// errAmbiguous is a question about nobody.
var errAmbiguous = usageError{errors.New("can needs one of --role ROLE, --agent AGENT and --who; only the holder of a role's token asks without, for that role")}

// question makes of the flags what the gateway is asked; token says that
// somebody asks who may have a role.
func (o *canOptions) question(tool string, token bool) (client.Question, error) {
	q := client.Question{Role: o.role, Agent: o.agent, State: o.state, Tool: tool}
	n := 0
	for _, given := range []bool{o.role != "", o.agent != "", o.who} {
		if given {
			n++
		}
	}
	if n > 1 || n == 0 && !token {
		return q, errAmbiguous
	}
	if tool == "" {
		return q, usageError{errors.New("can needs the name of a tool")}
	}
	if o.who {
		q.Who, q.Tool = tool, ""
	}
	if o.groups != nil {
		set := toolgroups.OfNames(o.groups...)
		q.Groups = &set
	}
	return q, nil
}

// verdictView is a verdict, and what a call has to bring beside the right.
type verdictView struct {
	client.Verdict
	Needs string `json:"needs,omitempty"`
}

func canFunc(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	v, err := api.Can(ctx, q)
	if errcode.Of(err) == errcode.InvalidArguments && q.Role == "" && q.Agent == "" {
		return errAmbiguous // the token is an operator's
	}
	if err != nil {
		return err
	}
	shown := verdictView{Verdict: v}
	if v.Allowed {
		if shown.Needs, err = needsOf(ctx, api, v.Tool); err != nil {
			return err
		}
	}
	if shown.Needs != "" && q.Agent != "" {
		shown.Allowed, shown.Code, shown.Rule = false, errcode.Unauthenticated, "agents have no tokens"
		shown.Reason = "tool " + v.Tool + " asks for " + shown.Needs + ", and agents have none"
	}
	if c.json {
		err = printJSON(c.out, shown)
	} else {
		_, err = io.WriteString(c.out, verdictText(shown))
	}
	if err == nil && !shown.Allowed {
		return errRefused
	}
	return err
}

// needsOf says what a tool asks of who calls it, that agents never have; "" is
// nothing.
func needsOf(ctx context.Context, api *client.Client, name string) (string, error) {
	t, err := api.Tool(ctx, name)
	if err != nil || t.Auth == nil {
		return "", err
	}
	var list []string
	if tokens := vouchers(t.Auth); tokens != "" {
		list = append(list, "a token of "+tokens)
	}
	if t.Auth.SecureArgs {
		list = append(list, "secure arguments")
	}
	return strings.Join(list, ", and "), nil
}

// verdictText words a verdict, the decision on its first line.
func verdictText(v verdictView) string {
	decision := "allowed"
	switch {
	case !v.Allowed:
		decision = fmt.Sprintf("denied: %s: %s", v.Code, clean(v.Reason))
	case v.Needs != "":
		decision = needsText(v.Needs)
	}
	return fmt.Sprintf("%s\ngroup: %s\nepoch: %d\nrule: %s\n", decision, orDash(clean(string(v.Group))), v.Epoch, clean(v.Rule))
}

func needsText(needs string) string {
	return "allowed only with " + clean(needs) + "; agents never are"
}

// holderView are those that may call a tool, and what a call has to bring beside.
type holderView struct {
	client.Holders
	Needs string `json:"needs,omitempty"`
}

func whoFunc(ctx context.Context, c *common, api *client.Client, q client.Question) error {
	h, err := api.Who(ctx, q)
	shown := holderView{Holders: h}
	if err == nil && h.Code == "" {
		shown.Needs, err = needsOf(ctx, api, h.Tool)
	}
	if shown.Needs != "" {
		shown.Agents = shown.Agents[:0]
	}
	switch {
	case err != nil:
		return err
	case c.json:
		err = printJSON(c.out, shown)
	case h.Code != "":
		_, err = fmt.Fprintf(c.out, "denied: %s: %s\n", h.Code, clean(h.Reason))
	default:
		err = holderTable(shown.Holders).print(c.out)
		if shown.Needs != "" {
			fmt.Fprintln(c.err, needsText(shown.Needs))
		}
	}
	if err == nil && h.Code != "" {
		return errRefused
	}
	return err
}

func holderTable(h client.Holders) table {
	rows := table{{"KIND", "NAME", "ID", "TASK"}}
	for _, r := range h.Roles {
		rows = append(rows, []string{"role", r.Name, string(r.ID), "-"})
	}
	for _, a := range h.Agents {
		rows = append(rows, []string{"agent", a.Role, string(a.ID), string(a.Task)})
	}
	return rows
}
