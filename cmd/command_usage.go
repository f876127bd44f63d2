package cmd

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
)

// usageOptions are the flags of usage.
type usageOptions struct {
	by       []string
	from, to string
}

func newUsageCommand(c *common) *cobra.Command {
	o := &usageOptions{}
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Count calls, tokens and costs in the record",
		Long: `Count calls, tokens and costs in the recorded events, grouped by some of caller, role,
server and tool. The caller is who started the task, or called from outside. The server is
the module or source of the tool, while it is registered. Tokens and costs belong to no
tool: they are in the rows without one. A caller with a token sees what it has used.`,
		Example: `  rolecall usage --by caller --from 720h
  rolecall usage --by role,tool --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --json`,
		Args: exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runUsage(ctx, c, api, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.by, "by", nil, "group by some of these `keys`: caller, role, server, tool")
	flags.StringVar(&o.from, "from", "", "count from this `time`: 24h (before now), or 2026-01-31T08:00:00Z")
	flags.StringVar(&o.to, "to", "", "count before this `time`")
	return cmd
}

func runUsage(ctx context.Context, c *common, api *client.Client, o *usageOptions) error {
	report, err := api.FetchUsage(ctx, o.by, o.from, o.to)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, report)
	}
	rows := table{{"CALLER", "ROLE", "SERVER", "TOOL", "CALLS", "DENIED", "TOKENS IN", "CACHED", "TOKENS OUT", "COST"}}
	for _, row := range report.Items {
		rows = append(rows, usageCells(row, row.UsageTotal))
	}
	if report.Rest != nil {
		rows = append(rows, usageCells(client.UsageRow{Caller: "others"}, *report.Rest))
	}
	if len(report.Items) != 1 {
		rows = append(rows, usageCells(client.UsageRow{Caller: "total"}, report.Total))
	}
	return rows.print(c.out)
}

// usageCells returns the cells of a row.
func usageCells(keys client.UsageRow, t client.UsageTotal) []string {
	return []string{
		orDash(keys.Caller), orDash(keys.Role), orDash(keys.Server), orDash(keys.Tool), strconv.Itoa(t.Calls.Total), strconv.Itoa(t.Calls.Denied),
		strconv.Itoa(t.Usage.Input), strconv.Itoa(t.Usage.Cached), strconv.Itoa(t.Usage.Output), costText(t.Usage),
	}
}
