package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/toolgroups"
)

// canOptions are the flags of can.
type canOptions struct {
	role, agent, state string
	groups             []string
	who                bool
	json               bool
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
agent or a tool that nobody knows is a denial.`,
		Example: `  rolecall can --role analyst read_file
  rolecall can --role analyst run_command --group workspace
  rolecall can --agent 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 send_message
  rolecall can --who run_javascript`,
		Args: exactly(1, "one tool name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.json = c.json
			q, err := o.question(args[0], c.variable(tokenVariable) != "")
			if err != nil {
				return err
			}
			return connected(c, looks, func(ctx context.Context, client *gateway.Client, _ []string) error {
				if o.who {
					return whoFunc(ctx, c.out, client, q, o.json)
				}
				return canFunc(ctx, c.out, client, q, o.json)
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

// errWhose is a question about nobody.
var errWhose = usageError{errors.New("can needs one of --role ROLE, --agent AGENT and --who; only the holder of a role's token asks without, for that role")}

// question makes of the flags what the gateway is asked; token says that
// somebody asks who may have a role.
func (o *canOptions) question(tool string, token bool) (gateway.Question, error) {
	q := gateway.Question{Role: o.role, Agent: o.agent, State: o.state, Tool: tool}
	n := 0
	for _, given := range []bool{o.role != "", o.agent != "", o.who} {
		if given {
			n++
		}
	}
	if n > 1 || n == 0 && !token {
		return q, errWhose
	}
	if tool == "" {
		return q, usageError{errors.New("can needs the name of a tool")}
	}
	if o.who {
		q.Who, q.Tool = tool, ""
	}
	if o.groups != nil {
		set := toolgroups.Of(groupIDs(o.groups)...)
		q.Groups = &set
	}
	return q, nil
}

func canFunc(ctx context.Context, out io.Writer, client *gateway.Client, q gateway.Question, asJSON bool) error {
	v, err := client.Can(ctx, q)
	if errcode.Of(err) == errcode.InvalidArguments && q.Role == "" && q.Agent == "" {
		return errWhose // the token is an operator's
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(out, v)
	} else {
		_, err = io.WriteString(out, verdictText(v))
	}
	if err == nil && !v.Allowed {
		return errRefused
	}
	return err
}

// verdictText words a verdict, the decision on its first line.
func verdictText(v gateway.Verdict) string {
	decision := "allowed"
	if !v.Allowed {
		decision = fmt.Sprintf("denied: %s: %s", v.Code, clean(v.Reason))
	}
	return fmt.Sprintf("%s\ngroup: %s\nepoch: %d\nrule: %s\n", decision, orDash(clean(string(v.Group))), v.Epoch, clean(v.Rule))
}

func whoFunc(ctx context.Context, out io.Writer, client *gateway.Client, q gateway.Question, asJSON bool) error {
	h, err := client.Who(ctx, q)
	switch {
	case err != nil:
		return err
	case asJSON:
		err = printJSON(out, h)
	case h.Code != "":
		_, err = fmt.Fprintf(out, "denied: %s: %s\n", h.Code, clean(h.Reason))
	default:
		err = holderTable(h).print(out)
	}
	if err == nil && h.Code != "" {
		return errRefused
	}
	return err
}

func holderTable(h gateway.Holders) table {
	rows := table{{"KIND", "NAME", "ID", "TASK"}}
	for _, r := range h.Roles {
		rows = append(rows, []string{"role", r.Name, string(r.ID), "-"})
	}
	for _, a := range h.Agents {
		rows = append(rows, []string{"agent", a.Role, string(a.ID), string(a.Task)})
	}
	return rows
}
