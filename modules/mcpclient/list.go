package mcpclient

import (
	"context"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
)

// listPins lists the server's tools and returns the definitions that can be offered. The
// tools for its resources and prompts, its prompts and its templates follow. A list that
// exceeds the limits is rejected as a whole.
func (n *conn) listPins(ctx context.Context, prefix string, log *slog.Logger) ([]modules.ToolPin, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	has := n.session.InitializeResult().Capabilities
	if has == nil {
		has = &sdk.ServerCapabilities{}
	}
	var tools []*sdk.Tool
	if has.Tools != nil {
		var err error
		if tools, err = n.listTools(ctx); err != nil {
			return nil, n.explain(fmt.Errorf("list its tools: %w", err))
		}
	}
	pins, err := pinsOf(prefix, tools, log)
	if err != nil {
		return nil, n.explain(err)
	}
	return n.withDescribed(ctx, withResourceTools(pins, prefix, has), has, log), nil
}

// listTools requests all pages of the list.
func (n *conn) listTools(ctx context.Context) (tools []*sdk.Tool, err error) {
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := n.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		if tools = append(tools, page.Tools...); len(tools) > maxTools {
			return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
		}
		if cursor = page.NextCursor; cursor == "" {
			return tools, nil
		}
		if seen[cursor] || len(seen) > maxTools {
			return nil, fmt.Errorf("the server's list of tools does not end")
		}
		seen[cursor] = true
	}
}

// pinsOf returns the valid definitions; the others are left out and logged. Tools of the
// same name are left out, since a call would be ambiguous.
func pinsOf(prefix string, tools []*sdk.Tool, log *slog.Logger) ([]modules.ToolPin, error) {
	count := map[string]int{}
	for _, t := range tools {
		count[t.Name]++
	}
	pins, size := []modules.ToolPin{}, 0
	for _, t := range tools {
		p, err := PinOf(prefix, t)
		if err == nil && count[t.Name] > 1 {
			err = fmt.Errorf("the server has %d tools of this name", count[t.Name])
		}
		if err != nil {
			log.Warn("MCP server tool left out", "tool", visibleLine(t.Name, 128), "reason", err)
			continue
		}
		if size += len(p.Description) + len(p.Input) + len(p.Annotations) + len(p.Listing.Output) + len(p.Listing.Icons) + len(p.Listing.Meta); size > maxDefinitions {
			return nil, fmt.Errorf("the server's definitions have more than %d MiB", maxDefinitions>>20)
		}
		pins = append(pins, p)
	}
	return pins, nil
}
