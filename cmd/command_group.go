package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

func newGroupCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "group",
		Short: "List and show tool groups",
		Long: `A tool group is a set of tools with one owner. The groups of the owner builtin always
exist; others come with modules and the configuration.`,
		Example: "  rolecall group list\n  rolecall group show workspace",
	}, newGroupListCommand(c), newGroupShowCommand(c))
}

func newGroupListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List tool groups, sorted by id",
		Example: "  rolecall group list\n  rolecall group list --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runGroupList(ctx, c.out, api, c.json)
		}),
	}
}

func runGroupList(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"ID", "OWNER", "TOOLS", "HOURS", "DESCRIPTION"}
	return printList(out, asJSON, api.ListGroups(ctx), head, func(g toolgroups.GroupInfo) []string {
		return []string{string(g.ID), string(g.Owner), strconv.Itoa(g.Count), openText(g.Hours), textutil.TruncateWidth(g.Description, maxCell)}
	})
}

func newGroupShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show GROUP",
		Short:   "Show a tool group and its tools",
		Example: "  rolecall group show workspace\n  rolecall group show workspace --json",
		Args:    exactArgs(1, "one group id"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runGroupShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runGroupShow(ctx context.Context, out io.Writer, api *client.Client, id string, asJSON bool) error {
	g, err := api.FindGroup(ctx, id)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, g)
	}
	list := fields{
		{"id", string(g.ID)}, {"owner", string(g.Owner)}, {"description", g.Description}, {"registered", formatTime(g.RegisteredAt)},
		{"hours", hoursText(g.Hours)}, {"state", openText(g.Hours)},
	}
	if len(g.Children) > 0 {
		list = append(list, [2]string{"children", toolgroups.SetOf(g.Children...).String()})
	}
	if len(g.Fallback) > 0 {
		list = append(list, [2]string{"fallback", toolgroups.SetOf(g.Fallback...).String()})
	}
	err = list.print(out)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out); err != nil {
		return err
	}
	return runToolList(ctx, out, api, id, false)
}

// hoursText returns the hours of a group; "" without hours.
func hoursText(h *toolgroups.GroupHours) string {
	if h == nil {
		return ""
	}
	return strings.Join(h.Open, ", ") + " (" + h.Zone + ")"
}

// openText says whether a group is open by its hours, and until when; "" without hours.
func openText(h *toolgroups.GroupHours) string {
	switch {
	case h == nil:
		return ""
	case h.Closed:
		return "closed" + untilText(h.NextChange)
	}
	return "open" + untilText(h.NextChange)
}
