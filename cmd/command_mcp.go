package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
)

func newMCPCommand(c *common) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "mcp --role ROLE [-f …]",
		Short: "Serve the tools of a role to an MCP client on stdin and stdout",
		Long: `Serve the tools of a role, exactly those, to the client of the Model Context
Protocol that started this command. Every call passes the gate and is on the
record. It ends when stdin does.

When a process serves the data directory, or ROLECALL_URL names a gateway, the
client talks to that one; else the organization runs in this process, with the
configuration of -f in force, and others reach it through the data directory's
socket meanwhile.`,
		Example: `  rolecall mcp --role analyst -f org.yaml
  claude mcp add rolecall -- rolecall mcp --role analyst --data /srv/org`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if role == "" {
				return usageError{errors.New("mcp needs --role ROLE, the id or name of the role whose tools it serves")}
			}
			return mcpFunc(cmd.Context(), c, role)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "serve the tools of the `role` of this id or name")
	return cmd
}

// mcpFunc serves through the process that has the data directory, or is that
// process. Nothing of stdin is read before one of both is settled.
func mcpFunc(ctx context.Context, c *common, role string) error {
	for try := 1; ; try++ {
		api, err := newClient(c)
		if err == nil {
			if len(c.files) > 0 {
				fmt.Fprintf(c.err, "a process serves %s with its own configuration; -f is not read\n", cmp.Or(c.variable(urlVariable), c.data))
			}
			return errors.Join(api.MCP(ctx, role, c.in, c.out), api.Close())
		}
		if !errors.Is(err, client.ErrNotServed) {
			return err
		}
		began, err := mcpAlone(ctx, c, role)
		if began || errcode.Of(err) != errcode.Conflict || try == maxTries {
			return err
		}
	}
}

// mcpAlone serves in a house of its own; began says that it got that far.
func mcpAlone(ctx context.Context, c *common, role string) (began bool, err error) {
	cfg, err := loadConfig(c)
	if err != nil {
		return false, err
	}
	err = withSession(ctx, c, func(ctx context.Context, s *session) error {
		began = true
		if cfg != nil {
			if err := s.Configure(ctx, cfg, nil); err != nil {
				return err
			}
			defer s.WatchConfig(ctx)()
		}
		err := s.MCP.ServeStdio(ctx, c.in, c.out, identity.ByOperator("operator"), role)
		if cfg == nil && errcode.Of(err) == errcode.RoleNotFound {
			err = errcode.Wrap(errcode.RoleNotFound, err, "%s in %s; -f names a configuration that has it", errcode.Message(err), c.data)
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = errors.Join(cause, err)
		}
		return err
	})
	return began, err
}
