package cmd

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
)

func newRoleSuspendCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "suspend ROLE",
		Short: "Stop the agents and callers of a role until it is resumed",
		Long: `Suspend a role and print who loses which tools. Its agents and its outside callers can
call nothing: every call is denied, and the reason says that the role is suspended. No
agent is spawned with the role and no task is started with it. The roles that its agents
created, and their agents, lose all tools too. This holds when the command returns; calls
that have started end normally. Models of the agents go on answering: cancel their tasks
to stop that.

A role of the configuration can be suspended, too. Restarts, updates and reloads keep the
suspension. A role of the operator or of the configuration that is created under the name
of a suspended role is suspended. "rolecall role resume" alone ends it. Root cannot be
suspended.`,
		Example: "  rolecall role suspend analyst\n  rolecall role resume analyst",
		Args:    exactArgs(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return roleSuspensionFunc(cmd.Context(), c, args[0], suspendRole)
		},
	}
}

func newRoleResumeCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "resume ROLE",
		Short: "End the suspension of a role",
		Long: `End the suspension of a role and print which roles and callers gain which tools. Each has exactly
the permissions that the role, its creators and the tasks allow now.`,
		Example: "  rolecall role resume analyst",
		Args:    exactArgs(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return roleSuspensionFunc(cmd.Context(), c, args[0], resumeRole)
		},
	}
}

// Values of suspend in roleSuspensionFunc.
const (
	suspendRole = true
	resumeRole  = false
)

// roleSuspensionFunc suspends or resumes a role and prints the effects.
func roleSuspensionFunc(ctx context.Context, c *common, ref string, suspend bool) error {
	api, done, err := connect(ctx, c, readWrite)
	if err != nil {
		return err
	}
	change, outcome, err := setSuspension(ctx, api, ref, suspend)
	if err = done(err); err != nil {
		return err
	}
	return printChange(c, &roleOptions{json: c.json}, outcome, change)
}

// setSuspension suspends or resumes a role and says what has happened to it.
func setSuspension(ctx context.Context, api *client.Client, ref string, suspend bool) (change client.RoleChange, outcome string, err error) {
	if ref, err = resolveRole(ctx, api, ref); err != nil {
		return change, "", err
	}
	before, _ := api.FindRole(ctx, ref) // the change tells better what is wrong
	if suspend {
		change, err = api.SuspendRole(ctx, ref)
	} else {
		change, err = api.ResumeRole(ctx, ref)
	}
	switch {
	case suspend && before.Suspended():
		outcome = "was suspended already"
	case suspend:
		outcome = "suspended"
	case !before.Suspended():
		outcome = "was not suspended"
	default:
		outcome = "resumed"
	}
	return change, outcome, err
}
