package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
)

func newApplyCommand(c *common) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "apply KIND/NAME < FILE",
		Short: "Put one configuration item into the data directory, or delete it",
		Long: `Read one document from stdin, in YAML or JSON, and put it into the data directory. It is
active at once in the process that serves the organization, and after each start, in
addition to the files of -f.

KIND is tool, toolService, toolset or prompt. Descriptors of TrustGraph are accepted as
they are, as tool-service/ID and tool/NAME.

A document that is not valid is rejected with exit status 2, and nothing changes. With
--delete the item is deleted; nothing is read from stdin. "rolecall config list" shows all
items and what became of them.`,
		Example: `  rolecall apply tool-service/joke-service < joke-service.json
  rolecall apply tool/tell-joke < tell-joke.json
  rolecall apply --delete tool/tell-joke`,
		Args: exactArgs(1, "one item: KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, name, err := parseItem(args[0])
			if err != nil {
				return usageError{err}
			}
			text := ""
			if !remove {
				if text, err = readItemText(c.in); err != nil {
					return err
				}
			}
			api, done, err := connect(cmd.Context(), c, createIfMissing)
			if err != nil {
				return err
			}
			return done(runApply(cmd.Context(), c, api, config.Item{Kind: kind, Name: name, Text: text}, remove))
		},
	}
	cmd.Flags().BoolVar(&remove, "delete", false, "delete the item")
	return cmd
}

// parseItem splits KIND/NAME.
func parseItem(text string) (kind, name string, err error) {
	kind, name, ok := strings.Cut(text, "/")
	if !ok {
		return "", "", fmt.Errorf("%s is not KIND/NAME; for example tool/tell-joke", textutil.Sanitize(textutil.Truncate(text, 100)))
	}
	if kind, err = config.FindItemKind(kind); err != nil {
		return "", "", err
	}
	return kind, name, config.CheckItem(config.Item{Kind: kind, Name: name})
}

// readItemText reads the text of an item.
func readItemText(in io.Reader) (string, error) {
	data, err := io.ReadAll(io.LimitReader(in, config.MaxItemText+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("read the item from stdin: %w", err)
	case len(data) > config.MaxItemText:
		return "", usageError{fmt.Errorf("the item on stdin has more than %d bytes", config.MaxItemText)}
	case !utf8.Valid(data):
		return "", usageError{errors.New("the item on stdin is not text in UTF-8")}
	}
	return string(data), nil
}

func runApply(ctx context.Context, c *common, api *client.Client, i config.Item, remove bool) error {
	change, verb := func() (client.ConfigItem, error) { return api.ApplyConfigItem(ctx, i.Kind, i.Name, i.Text) }, "applied"
	if remove {
		change, verb = func() (client.ConfigItem, error) { return api.DeleteConfigItem(ctx, i.Kind, i.Name) }, "deleted"
	}
	item, err := change()
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, item)
	}
	if _, err := fmt.Fprintf(c.out, "%s/%s is %s\n", textutil.Sanitize(item.Kind), textutil.Sanitize(item.Name), verb); err != nil {
		return err
	}
	return printBroken(ctx, c.err, api)
}

// printBroken prints the items that are not active.
func printBroken(ctx context.Context, out io.Writer, api *client.Client) error {
	for i, err := range api.ListConfigItems(ctx) {
		if err != nil {
			return err
		}
		if i.Status != wire.ItemActive {
			fmt.Fprintf(out, "~ %s/%s is %s: %s\n", textutil.Sanitize(i.Kind), textutil.Sanitize(i.Name), i.Status, textutil.Sanitize(i.Reason))
		}
	}
	return nil
}
