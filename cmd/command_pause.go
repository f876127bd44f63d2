package cmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

func newPauseCommand(c *common) *cobra.Command {
	o := &pauseOptions{verb: "pause"}
	cmd := &cobra.Command{
		Use:   "pause [TASK]",
		Short: "Pause a task, a role or the whole organization until it is resumed",
		Long: `Pause a task, the agents and outside callers of a role, or the whole organization. When the
command returns, no call of it starts and no model is asked any more. Calls and answers that
have begun end, and are kept. Its agents rest until "rolecall resume", also over restarts.

With --role, outside callers of the role can call nothing, no agent is spawned with it and no
task is started with it. The roles that its agents created are paused, too. Reloads keep the
pause. A role of the operator or of the configuration that is created under the name of a
paused role is paused. Root cannot be paused.

With --all, no agent works and every call of an outside caller is denied.`,
		Example: `  rolecall pause last --reason "wrong customer"
  rolecall pause --role analyst
  rolecall pause --all --reason maintenance`,
		Args: o.checkArgs,
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			return runPause(ctx, c, api, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

func newResumeCommand(c *common) *cobra.Command {
	o := &pauseOptions{verb: "resume"}
	cmd := &cobra.Command{
		Use:   "resume [TASK]",
		Short: "Let go on what was paused",
		Long: `End the pause of a task, a role or the organization. Its agents go on where they stopped,
and no call is repeated. What is paused besides stays paused: a task in a paused organization,
or an agent of a paused role.

A task that an error or its budget has paused goes on with "rolecall task retry".`,
		Example: `  rolecall resume last
  rolecall resume --role analyst
  rolecall resume --all`,
		Args: o.checkArgs,
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			return runPause(ctx, c, api, o, args)
		}),
	}
	o.addFlags(cmd)
	return cmd
}

// pauseOptions are the flags of pause and resume.
type pauseOptions struct {
	verb   string
	role   string
	all    bool
	reason string
}

func (o *pauseOptions) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.role, "role", "", o.verb+" a `role`, by id or name")
	cmd.Flags().BoolVar(&o.all, "all", false, o.verb+" the whole organization")
	cmd.Flags().StringVar(&o.reason, "reason", "", "reason (recorded)")
}

// checkArgs rejects a command line that does not name exactly one thing.
func (o *pauseOptions) checkArgs(_ *cobra.Command, args []string) error {
	named := len(args)
	if o.role != "" {
		named++
	}
	if o.all {
		named++
	}
	if named != 1 {
		return usageError{errors.New(o.verb + " takes one task, by id or as \"last\", or --role ROLE, or --all")}
	}
	return nil
}

// request returns the request for the command line.
func (o *pauseOptions) request(ctx context.Context, api *client.Client, args []string) (q client.PauseRequest, err error) {
	q = client.PauseRequest{All: o.all, Reason: o.reason}
	if o.role != "" {
		q.Role, err = resolveRole(ctx, api, o.role)
	}
	if len(args) > 0 {
		var id string
		id, err = resolveTask(ctx, api, args[0])
		q.Task = identity.TaskID(id)
	}
	return q, err
}

// runPause pauses or resumes the task, role or organization that the command line names. It prints
// the new state.
func runPause(ctx context.Context, c *common, api *client.Client, o *pauseOptions, args []string) error {
	q, err := o.request(ctx, api, args)
	if err != nil {
		return err
	}
	before, _ := api.FindRole(ctx, q.Role) // the change tells better what is wrong
	do := api.Pause
	if o.verb == "resume" {
		do = api.Resume
	}
	change, err := do(ctx, q)
	switch {
	case err != nil:
		return err
	case change.Role != nil:
		return printChange(c, &roleOptions{json: c.json}, roleOutcome(o.verb, before.Suspended()), *change.Role)
	case c.json:
		return printJSON(c.out, change)
	case change.Task != nil:
		_, err = fmt.Fprintf(c.out, "task %s is %s\n", textutil.Sanitize(string(change.Task.ID)), change.Task.Status)
	case change.All != nil:
		_, err = fmt.Fprintln(c.out, "the organization is paused")
	default:
		_, err = fmt.Fprintln(c.out, "the organization is resumed")
	}
	return err
}

// roleOutcome says what has happened to a role.
func roleOutcome(verb string, was bool) string {
	switch {
	case verb == "pause" && was:
		return "was paused already"
	case verb == "pause":
		return "paused"
	case !was:
		return "was not paused"
	}
	return "resumed"
}
