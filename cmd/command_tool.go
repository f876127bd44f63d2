package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

func newToolCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "tool",
		Short: "List, show, call, accept and set tools",
		Long: `Each tool belongs to one group. Roles decide which agents can call it: see
"rolecall can --who TOOL".

The tool definitions of an MCP server are accepted when it is connected for the first
time. One that is new or changed later is quarantined: no role has the tool until
"rolecall tool accept". So are those of a service that announces itself, from the first
time on unless the configuration allows the service by name.`,
		Example: "  rolecall tool list --group workspace\n  rolecall tool show read_file\n  rolecall tool call --role reader read_file '{\"path\": \"notes.txt\"}'\n  rolecall tool accept --dry-run fs",
	}, newToolListCommand(c), newToolShowCommand(c), newToolCallCommand(c), newToolAcceptCommand(c), newToolSetCommand(c))
}

func newToolListCommand(c *common) *cobra.Command {
	var group string
	var quarantined bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List tools, sorted by name",
		Example: "  rolecall tool list\n  rolecall tool list --group workspace --json\n  rolecall tool list --quarantined",
		Args:    exactArgs(0, "no arguments"),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return rejectTogether(cmd, "group", "quarantined")
		},
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			if quarantined {
				return printQuarantine(ctx, c.out, api, c.json)
			}
			return runToolList(ctx, c.out, api, group, c.json)
		}),
	}
	cmd.Flags().StringVar(&group, "group", "", "only tools of the group with this `id`")
	cmd.Flags().BoolVar(&quarantined, "quarantined", false, "only quarantined definitions")
	return cmd
}

// runToolList prints the tools of a group, or of all groups.
func runToolList(ctx context.Context, out io.Writer, api *client.Client, group string, asJSON bool) error {
	head := []string{"NAME", "GROUP", "OWNER", "EFFECT", "FLAGS", "STATES", "DESCRIPTION"}
	return printList(out, asJSON, api.ListTools(ctx, group), head, func(t client.Tool) []string {
		return []string{t.Name, string(t.Group), string(t.Owner), t.Effect, flagsText(t.ToolFlags), statesOf(t), textutil.TruncateWidth(t.Description, maxCell)}
	})
}

// flagsText lists the flags of a tool.
func flagsText(f client.ToolFlags) string {
	switch {
	case !f.FlagsKnown:
		return "not set"
	case len(f.Flags) == 0:
		return "none"
	}
	return joinNames(f.Flags)
}

// statesOf lists the workflow states in which a tool can be called.
func statesOf(t client.Tool) string {
	switch {
	case t.States == nil:
		return "all"
	case len(t.States) == 0:
		return "none"
	}
	return joinNames(t.States)
}

func newToolShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show TOOL",
		Short:   "Show a tool with its input schema",
		Example: "  rolecall tool show read_file\n  rolecall tool show read_file --json",
		Args:    exactArgs(1, "one tool name"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runToolShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runToolShow(ctx context.Context, out io.Writer, api *client.Client, name string, asJSON bool) error {
	t, err := api.FindTool(ctx, name)
	if err != nil {
		return err
	}
	shown := fields{{"name", t.Name}, {"owner", string(t.Owner)}}
	if t.Group != "" {
		var schema bytes.Buffer
		if err := json.Indent(&schema, t.Input, "", "  "); err != nil {
			return err
		}
		shown = fields{
			{"name", t.Name}, {"group", string(t.Group)}, {"owner", string(t.Owner)}, {"effect", t.Effect},
			{"flags", flagsText(t.ToolFlags)}, {"states", statesOf(t)}, {"next state", t.State}, {"auth", authText(t.Auth)}, {"description", t.Description}, {"input", jsonText(schema.Bytes())},
		}
	}
	if t.QuarantineEntry != nil {
		shown = append(shown, [2]string{"quarantine", quarantineDiff(t.Offered, t.Accepted)}, [2]string{"digest", t.Digest})
	}
	return printOne(out, asJSON, t, shown)
}

// authText describes the auth services whose tokens a tool requires, and what for; "" if
// it requires none.
func authText(a *tool.Auth) string {
	if a == nil {
		return ""
	}
	var list []string
	if len(a.AnyOf) > 0 {
		list = append(list, strings.Join(a.AnyOf, " or ")+" for the call")
	}
	if len(a.Scopes) > 0 {
		list = append(list, a.ScopesOf+" for the scopes "+strings.Join(a.Scopes, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(a.Parameters)) {
		list = append(list, strings.Join(a.Parameters[name], " or ")+" for "+name)
	}
	return strings.Join(list, "; ")
}
