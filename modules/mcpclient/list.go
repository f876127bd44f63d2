package mcpclient

import (
	"context"
	"fmt"
	"log/slog"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
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
	pins := []modules.ToolPin{}
	if has.Tools != nil {
		var err error
		if pins, err = n.listTools(ctx, prefix, log); err != nil {
			return nil, n.explain(fmt.Errorf("list its tools: %w", err))
		}
	}
	return n.withDescribed(ctx, withResourceTools(pins, prefix, has), has, log), nil
}

// listTools requests all pages of the list and returns the definitions that can be offered.
func (n *conn) listTools(ctx context.Context, prefix string, log *slog.Logger) ([]modules.ToolPin, error) {
	ctx = withPageLimits(ctx)
	list := toolList{prefix: prefix, log: log, count: map[string]int{}}
	seen := map[string]bool{}
	for cursor := ""; ; {
		page, err := n.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		if err := list.add(page); err != nil {
			return nil, err
		}
		if cursor = page.NextCursor; cursor == "" {
			return list.unambiguous(), nil
		}
		if seen[cursor] || len(seen) > maxTools {
			return nil, fmt.Errorf("the server's list of tools does not end")
		}
		seen[cursor] = true
	}
}

// toolList holds the valid definitions of a list, whose pages arrive one after the other. The
// other definitions are logged and not held.
type toolList struct {
	prefix string
	log    *slog.Logger

	listed int // tools
	pins   []modules.ToolPin
	count  map[string]int // of the tools with a valid name
	size   int            // bytes of pins, and of the cursors
}

// add converts the tools of a page. A list that exceeds the limits is an error.
func (l *toolList) add(page *sdk.ListToolsResult) error {
	if l.listed += len(page.Tools); l.listed > maxTools {
		return fmt.Errorf("the server lists more than %d tools", maxTools)
	}
	l.size += len(page.NextCursor)
	for _, t := range page.Tools {
		if tool.CheckName(l.prefix+t.Name) == nil {
			l.count[t.Name]++
		}
		p, err := PinOf(l.prefix, t)
		if err != nil {
			l.leaveOut(t.Name, err)
			continue
		}
		l.pins = append(l.pins, p)
		l.size += len(p.Description) + len(p.Input) + len(p.Annotations) + len(p.Listing.Output) + len(p.Listing.Icons) + len(p.Listing.Meta)
	}
	if l.size > maxDefinitions {
		return fmt.Errorf("the server's definitions have more than %d MiB", maxDefinitions>>20)
	}
	return nil
}

// unambiguous returns the definitions without tools of the same name. A call of those would be
// ambiguous.
func (l *toolList) unambiguous() []modules.ToolPin {
	pins := []modules.ToolPin{}
	for _, p := range l.pins {
		if count := l.count[p.Tool]; count > 1 {
			l.leaveOut(p.Tool, fmt.Errorf("the server has %d tools of this name", count))
			continue
		}
		pins = append(pins, p)
	}
	return pins
}

func (l *toolList) leaveOut(name string, reason error) {
	l.log.Warn("MCP server tool left out", "tool", visibleLine(name, 128), "reason", reason)
}
