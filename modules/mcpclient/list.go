package mcpclient

import (
	"context"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
)

// list asks the server for its tools and gives what can be offered of them,
// with the tools for its resources and prompts at the end. A list that is out
// of bounds is refused as a whole.
func (n *conn) list(ctx context.Context, prefix string, log *slog.Logger) ([]modules.Pin, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	told := n.changes.Load()
	has := n.session.InitializeResult().Capabilities
	if has == nil {
		has = &sdk.ServerCapabilities{}
	}
	var tools []*sdk.Tool
	if has.Tools != nil {
		var err error
		if tools, err = n.pages(ctx); err != nil {
			return nil, n.explain(fmt.Errorf("list its tools: %w", err))
		}
	}
	pins, err := pinsOf(prefix, tools, log)
	if err != nil {
		return nil, n.explain(err)
	}
	n.listed.Store(told)
	return withExtras(pins, prefix, has), nil
}

// pages lists all pages.
func (n *conn) pages(ctx context.Context) (tools []*sdk.Tool, err error) {
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

// pinsOf gives what can be offered, each name once: of two tools of one name
// nobody could say which is meant, so both are left out.
func pinsOf(prefix string, tools []*sdk.Tool, log *slog.Logger) ([]modules.Pin, error) {
	times := map[string]int{}
	for _, t := range tools {
		times[t.Name]++
	}
	pins, size := []modules.Pin{}, 0
	for _, t := range tools {
		p, err := PinOf(prefix, t)
		if err == nil && times[t.Name] > 1 {
			err = fmt.Errorf("the server has %d tools of this name", times[t.Name])
		}
		if err != nil {
			log.Warn("a tool of an MCP server is left out", "tool", oneLine(t.Name, 128), "reason", err)
			continue
		}
		if size += len(p.Description) + len(p.Input) + len(p.Annotations); size > maxDefinitions {
			return nil, fmt.Errorf("the server's definitions have more than %d MiB", maxDefinitions>>20)
		}
		pins = append(pins, p)
	}
	return pins, nil
}
