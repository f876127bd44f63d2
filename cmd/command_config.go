package cmd

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
)

func newConfigCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:     "config",
		Short:   "List the applied configuration items",
		Example: "  rolecall config list",
	}, newConfigListCommand(c))
}

func newConfigListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the applied configuration items, sorted by kind and name",
		Long: `List the configuration items that "rolecall apply" has put into the data directory, and
what became of them: active; broken, with the reason; or conflict, if a file of -f declares
the same kind and name. "broken, kept" means that the last version that worked is still in
service.`,
		Example: "  rolecall config list\n  rolecall config list -f org.yaml --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runConfigList(ctx, c.out, api, c.json)
		}),
	}
}

func runConfigList(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	return printList(out, asJSON, api.ListConfigItems(ctx), []string{"KIND", "NAME", "STATUS", "REASON"}, func(i client.ConfigItem) []string {
		status := i.Status
		if i.Kept {
			status += ", kept"
		}
		return []string{i.Kind, i.Name, status, cmp.Or(i.Reason, "-")}
	})
}
