package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

func newApprovalCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "approval",
		Short: "List the calls that wait for people, and decide about them",
		Long: `A role says with "approval" which calls wait for people, and whose votes they need. These
commands show the calls that wait for you, and approve or deny them.`,
		Example: "  rolecall approval list\n  rolecall approval approve 01a2227d-68c1-7b4f-9de0-9397cdc7eb31",
	}, newApprovalListCommand(c), newApprovalShowCommand(c), newApprovalApproveCommand(c), newApprovalDenyCommand(c),
		newApprovalStandingCommand(c), newApprovalRevokeCommand(c))
}

func newApprovalListCommand(c *common) *cobra.Command {
	var watch, decided bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that wait for your approval, oldest first",
		Long: `List the calls that wait and that you may approve, oldest first. With an operator's token,
or in the data directory, all calls that wait are listed.

With --watch, also print a line for each further call that waits, each vote and each end,
until Ctrl-C. With --json, each line is a JSON document. If the process that serves
restarts, the command connects again.

With --decided, list the last calls that are decided instead, and what became of them.`,
		Example: "  rolecall approval list\n  rolecall approval list --watch\n  rolecall approval list --watch --json\n  rolecall approval list --decided",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			if decided && watch {
				return usageError{errors.New("--watch and --decided are mutually exclusive")}
			}
			if decided {
				return printDecided(ctx, c, api)
			}
			if watch && !api.IsLocal() {
				return watchApprovals(ctx, c, api)
			}
			if err := runApprovalList(ctx, c, api); err != nil || !watch {
				return err
			}
			return fmt.Errorf("--watch has nothing to wait for: no process serves %s; start \"rolecall serve\"", c.data)
		}),
	}
	cmd.Flags().BoolVar(&watch, "watch", false, "wait for further calls and decisions, until Ctrl-C")
	cmd.Flags().BoolVar(&decided, "decided", false, "list the last calls that are decided")
	return cmd
}

// printDecided lists the last calls that are decided.
func printDecided(ctx context.Context, c *common, api *client.Client) error {
	list, err := api.ListDecidedApprovals(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, list)
	}
	rows := table{{"ID", "TOOL", "ROLE", "FOR", "OUTCOME", "BY", "DECIDED", "ARGS"}}
	for _, d := range list {
		rows = append(rows, decidedRow(d))
	}
	return rows.print(c.out)
}

// decidedRow returns a row of the table of calls that are decided.
func decidedRow(d client.DecidedApproval) []string {
	return []string{
		d.ID, d.Tool, d.Role, cmp.Or(d.Starter, "operator"), strings.TrimSpace(d.Status + " " + d.Code), d.By, d.At.UTC().Format(time.RFC3339),
		textutil.TruncateWidth(textutil.Sanitize(d.Short), maxShortArgs),
	}
}

func runApprovalList(ctx context.Context, c *common, api *client.Client) error {
	return printList(c.out, c.json, api.ListApprovals(ctx), approvalHead, approvalRow)
}

// approvalHead is the head of a table of calls that wait.
var approvalHead = []string{"ID", "TOOL", "ROLE", "FOR", "VOTES", "WAITS", "UNTIL", "ARGS"}

// approvalRow returns a row of the table.
func approvalRow(a client.Approval) []string {
	return []string{a.ID, a.Tool, a.Role, starterText(a), fmt.Sprint(len(a.Votes)), time.Since(a.Asked).Round(time.Second).String(), a.Until.UTC().Format(time.RFC3339), textutil.TruncateWidth(textutil.Sanitize(a.Short), maxShortArgs)}
}

// starterText returns the name of the user for whom a call is made, or "operator".
func starterText(a client.Approval) string {
	if a.Starter == "" {
		return "operator"
	}
	return a.Starter
}

func newApprovalShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID",
		Short: "Show a call that waits, with its arguments and votes",
		Long: `Show a call that waits: the tool, the arguments, the reason that the agent named, whose
approval is needed and who has approved it. The arguments and the reason come from an agent
or a caller. Do not follow what they say.`,
		Example: "  rolecall approval show 01a2227d-68c1-7b4f-9de0-9397cdc7eb31",
		Args:    exactArgs(1, "the id of one request"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			a, err := api.FindApproval(ctx, args[0])
			if err != nil {
				return err
			}
			return printJSON(c.out, a)
		}),
	}
}

func newApprovalApproveCommand(c *common) *cobra.Command {
	var d client.ApprovalDecision
	var args string
	var further patternFlags
	cmd := &cobra.Command{
		Use:   "approve ID...",
		Short: "Approve calls that wait",
		Long: `Approve calls. Several are decided in one commit, with an outcome each: vote if more people
must approve, or approved. The call is then decided again from the beginning, and runs once.

With --args the call runs with other arguments. They must fit the tool's schema, and votes of
others for the former arguments do not count. With --override an operator approves in place
of the approvers. The record marks that, with the reason.

With --pattern, further calls of the agent in this task are approved, too: those that fit the
pattern and have the other arguments of this call. --uses or --for says when that ends. All
approvers that the rules need must approve the same pattern, else only this call is approved.`,
		Example: `  rolecall approval approve 01a2227d-68c1-7b4f-9de0-9397cdc7eb31
  rolecall approval approve 01a2227d-68c1-7b4f-9de0-9397cdc7eb31 --args '{"amount": 3}'
  rolecall approval approve 01a2227d-68c1-7b4f-9de0-9397cdc7eb31 --override --reason "finance is on holiday"
  rolecall approval approve 01a2227d-68c1-7b4f-9de0-9397cdc7eb31 --pattern '{"/amount": {"max": 100}}' --uses 5`,
		Args: approvalIDArgs,
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, ids []string) error {
			d.Action = "approve"
			if args != "" {
				if d.Args = json.RawMessage(args); len(ids) > 1 {
					return usageError{errors.New("--args is for one request")}
				}
			}
			var err error
			if d.Pattern, err = further.pattern(); err != nil {
				return err
			}
			return runApprovalDecide(ctx, c, api, ids, d)
		}),
	}
	further.addFlags(cmd)
	cmd.Flags().StringVar(&args, "args", "", "the arguments of the call, a JSON object, in place of those of the agent")
	cmd.Flags().BoolVar(&d.Override, "override", false, "approve as an operator in place of the approvers; needs --reason")
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&d.Digest, "digest", "", "the digest of the arguments that you have seen; other arguments are not approved")
	return cmd
}

func newApprovalDenyCommand(c *common) *cobra.Command {
	d := client.ApprovalDecision{Action: "deny"}
	cmd := &cobra.Command{
		Use:     "deny ID...",
		Short:   "Deny calls that wait",
		Long:    `Deny calls. The agent reads the reason. Several calls are decided in one commit.`,
		Example: `  rolecall approval deny 01a2227d-68c1-7b4f-9de0-9397cdc7eb31 --reason "the invoice is a copy"`,
		Args:    approvalIDArgs,
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, ids []string) error {
			return runApprovalDecide(ctx, c, api, ids, d)
		}),
	}
	cmd.Flags().StringVar(&d.Reason, "reason", "", "why; the agent reads it")
	return cmd
}

// approvalIDArgs requires one id or more, each of a call that waits.
func approvalIDArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains(args, "") {
		return usageError{fmt.Errorf("%s takes the ids of one request or more", commandName(cmd))}
	}
	return nil
}

// runApprovalDecide makes the same decision about each of the calls, in one request, and prints the
// outcomes. It returns the error of the first decision that was rejected; the others count.
func runApprovalDecide(ctx context.Context, c *common, api *client.Client, ids []string, d client.ApprovalDecision) error {
	var list client.ApprovalDecisions
	for _, id := range ids {
		list.Decisions = append(list.Decisions, client.NamedDecision{ID: id, ApprovalDecision: d})
	}
	out, err := api.DecideApprovals(ctx, list)
	if err != nil {
		return err
	}
	if err := printOutcomes(c, out); err != nil {
		return err
	}
	for _, o := range out.Outcomes {
		if o.Code != "" {
			return errcode.New(errcode.Code(o.Code), "%s", o.Message)
		}
	}
	return nil
}

func printOutcomes(c *common, out client.ApprovalOutcomes) error {
	if c.json {
		return printJSON(c.out, out)
	}
	rows := table{{"ID", "OUTCOME"}}
	for _, o := range out.Outcomes {
		row := []string{o.ID, cmp.Or(o.Outcome, o.Code)} // a rejected decision has only a code
		if o.Standing != "" {
			row[1] += ", with the standing approval " + o.Standing
		}
		rows = append(rows, row)
	}
	return rows.print(c.out)
}
