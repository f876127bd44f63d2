package cmd

import (
	"cmp"
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
)

func newTokenListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the tokens of the configuration, sorted by name",
		Long: `List the tokens of the configuration: that of the process that serves the data directory,
or that of -f. The start-up token is not listed. Tokens themselves are stored nowhere.`,
		Example: "  rolecall token list\n  rolecall token list -f org.yaml --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runTokenList(ctx, c.out, api, c.json)
		}),
	}
}

func runTokenList(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"NAME", "SCOPE", "ROLE", "EXPIRES", "AUDIENCE"}
	return printList(out, asJSON, api.ListTokens(ctx), head, func(t client.Token) []string {
		return []string{t.Name, t.Scope, cmp.Or(t.Role, "-"), expiryText(t), cmp.Or(t.Audience, "-")}
	})
}

// expiryText returns when a token expires.
func expiryText(t client.Token) string {
	switch {
	case t.Expires == nil:
		return "never"
	case t.Expired:
		return "expired " + t.Expires.UTC().Format(time.DateOnly)
	}
	return t.Expires.UTC().Format(time.RFC3339)
}
