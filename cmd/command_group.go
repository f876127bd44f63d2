package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/toolgroups"
)

func newGroupCommand(c *common) *cobra.Command {
	return parentCommand(&cobra.Command{
		Use:   "group",
		Short: "Look at the tool groups that roles are made of",
		Long: `A tool group is an id and the tools that its owner brings. The groups of the
owner builtin are always there; others come with modules and configuration.`,
		Example: "  rolecall group list\n  rolecall group show workspace",
	}, newGroupListCommand(c), newGroupShowCommand(c))
}

func newGroupListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the tool groups, sorted by id",
		Example: "  rolecall group list\n  rolecall group list --json",
		Args:    exactly(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return groupListFunc(ctx, c.out, api, c.json)
		}),
	}
}

func groupListFunc(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"ID", "OWNER", "TOOLS", "DESCRIPTION"}
	return printList(out, asJSON, api.Groups(ctx), head, func(g toolgroups.Info) []string {
		return []string{string(g.ID), string(g.Owner), strconv.Itoa(g.Count), cut(clean(g.Description), maxCell)}
	})
}

func newGroupShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show GROUP",
		Short:   "Show one tool group with its tools",
		Example: "  rolecall group show workspace\n  rolecall group show workspace --json",
		Args:    exactly(1, "one group id"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return groupShowFunc(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func groupShowFunc(ctx context.Context, out io.Writer, api *client.Client, id string, asJSON bool) error {
	g, err := api.Group(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, g)
	}
	err = fields{{"id", string(g.ID)}, {"owner", string(g.Owner)}, {"description", g.Description}, {"registered", formatTime(g.RegisteredAt)}}.print(out)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return toolListFunc(ctx, out, api, id, false)
}
