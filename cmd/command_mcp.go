package cmd

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
)

// mcpOptions are the flags of mcp.
type mcpOptions struct{ role, workspace string }

func newMCPCommand(c *common) *cobra.Command {
	o := &mcpOptions{}
	cmd := &cobra.Command{
		Use:   "mcp --role ROLE [--workspace DIR[:ro]] [-f …]",
		Short: "Serve the tools of a role to an MCP client over stdin and stdout",
		Long: `Serve the tools of a role to the MCP client that started this command, and no other
tools. Every call is checked and recorded. The command ends when stdin closes.

If a process serves the data directory, or ROLECALL_URL names a gateway, the client is
connected to it. Otherwise the organization runs in this process with the
configuration of -f, and other commands reach it through the data directory's socket.

The tools for files work in the directory of --workspace, which may not contain the data
directory. A client that declares roots works in the first of them that is that directory or
below it. If a process serves the data directory already, its default workspace must be the
same.`,
		Example: `  rolecall mcp --role analyst -f org.yaml
  rolecall mcp --role analyst -f org.yaml --workspace ~/project --data ~/.rolecall
  claude mcp add rolecall -- rolecall mcp --role analyst --data /srv/org`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.role == "" {
				return usageError{errors.New("mcp needs --role ROLE, the id or name of the role whose tools it serves")}
			}
			return runMCP(cmd.Context(), c, o)
		},
	}
	cmd.AddCommand(newMCPLoginCommand(c), newMCPLogoutCommand(c), newMCPLoginsCommand(c))
	cmd.Flags().StringVar(&o.role, "role", "", "serve the tools of this `role`, by id or name")
	cmd.Flags().StringVar(&o.workspace, "workspace", "", "use `DIR[:ro]` as the workspace of the client, if its role has none")
	return cmd
}

// runMCP connects stdin and stdout to the process that serves the data directory, or runs
// the organization itself. It reads nothing of stdin before that is decided.
func runMCP(ctx context.Context, c *common, o *mcpOptions) error {
	return withServing(ctx, c, func(api *client.Client) error {
		workspace, err := o.servedWorkspace(c)
		if err != nil {
			return err
		}
		role, err := findRoleID(ctx, api, o.role)
		if err != nil {
			return err
		}
		return api.ServeMCP(ctx, role, workspace, c.in, c.out)
	}, func() (began bool, err error) { return serveMCPLocally(ctx, c, o) })
}

// servedWorkspace returns the workspace that a serving process must have as its default.
func (o *mcpOptions) servedWorkspace(c *common) (string, error) {
	if o.workspace == "" {
		return "", nil
	}
	if c.getenv(urlVariable) != "" {
		return "", usageError{errors.New("--workspace is a directory of this machine, and a gateway accepts none; leave --workspace out")}
	}
	dir, readOnly, err := parseWorkspace(o.workspace)
	if readOnly {
		dir += ":ro"
	}
	return dir, err
}

// serveMCPLocally runs the organization in this process. began reports whether it could open
// the data directory; if not, another process may have it, and the caller tries again.
func serveMCPLocally(ctx context.Context, c *common, o *mcpOptions) (began bool, err error) {
	if err := c.requireOrganization(); err != nil {
		return false, err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return false, err
	}
	err = withSession(ctx, c, sessionOptions{workspace: o.workspace}, func(ctx context.Context, s *session) error {
		began = true
		if cfg != nil {
			if err := s.ApplyConfig(ctx, cfg, nil); err != nil {
				return err
			}
			defer s.WatchConfig(ctx)()
		}
		api, err := s.Client()
		if err != nil {
			return err
		}
		role, err := findRoleID(ctx, api, o.role)
		if err == nil {
			err = s.MCP.ServeStdio(ctx, c.in, c.out, mcpserver.StdioClient{Sender: identity.ByOperator("operator"), Role: role, Roots: o.workspace != ""})
		}
		if cfg == nil && errcode.CodeOf(err) == errcode.RoleNotFound {
			err = errcode.Wrap(errcode.RoleNotFound, err, "%s in %s; -f names a configuration that has it", errcode.Message(err), c.data)
		}
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
			err = errors.Join(cause, err)
		}
		return err
	})
	return began, err
}
