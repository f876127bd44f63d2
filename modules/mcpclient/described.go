package mcpclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
)

// The Kinds of the ToolPins of prompts and of templates of resources. They are no tools:
// clients are shown them, once they are accepted. They are part of the stored digest.
const (
	kindPrompt   = "prompt"
	kindTemplate = "template"
)

// Limits of what a server describes besides tools.
const (
	maxDescribed     = 1000 // prompts, and templates
	maxArguments     = 50   // of a prompt
	maxTemplate      = 2 << 10
	describedTimeout = 5 * time.Second // to list all of them
)

// promptDefinition is the Input of the ToolPin of a prompt.
type promptDefinition struct {
	Name        string           `json:"name"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []promptArgument `json:"arguments,omitempty"`
}

type promptArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// templateDefinition is the Input of the ToolPin of a template of resources.
type templateDefinition struct {
	URITemplate string `json:"uriTemplate"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// isTool reports whether a pin is of a tool, and not of a prompt or a template.
func isTool(p modules.ToolPin) bool { return p.Kind != kindPrompt && p.Kind != kindTemplate }

// withDescribed appends the prompts and templates that the server lists. Those that cannot
// be offered are left out and logged. A server that fails to list them counts as a server
// without any: many declare a capability and lack the method.
func (n *conn) withDescribed(ctx context.Context, pins []modules.ToolPin, has *sdk.ServerCapabilities, log *slog.Logger) []modules.ToolPin {
	ctx, cancel := context.WithTimeout(ctx, describedTimeout)
	defer cancel()
	size := 0
	add := func(p modules.ToolPin, err error) {
		if size += len(p.Input); err == nil && size > maxDefinitions {
			err = fmt.Errorf("the definitions have more than %d MiB", maxDefinitions>>20)
		}
		if err != nil {
			log.Warn("MCP server prompt or template left out", "name", visibleLine(p.Tool, 128), "reason", err)
			return
		}
		pins = append(pins, p)
	}
	if has.Prompts != nil {
		takeEach(n.session.Prompts(withPageLimits(ctx), nil), log, func(p *sdk.Prompt) { add(pinOfPrompt(p)) })
	}
	if has.Resources != nil {
		takeEach(n.session.ResourceTemplates(withPageLimits(ctx), nil), log, func(t *sdk.ResourceTemplate) { add(pinOfTemplate(t)) })
	}
	return withoutRepeated(pins)
}

// takeEach calls take for the first maxDescribed items of a list.
func takeEach[T any](list iter.Seq2[*T, error], log *slog.Logger, take func(*T)) {
	n := 0
	for item, err := range list {
		if n++; err != nil || n > maxDescribed {
			log.Debug("MCP server list ended early", "items", n-1, "error", err)
			return
		}
		if item != nil {
			take(item)
		}
	}
}

// withoutRepeated returns the pins without prompts and templates whose name occurs before.
func withoutRepeated(pins []modules.ToolPin) []modules.ToolPin {
	seen, list := map[string]bool{}, pins[:0:0]
	for _, p := range pins {
		if isTool(p) || !seen[p.Tool] {
			list = append(list, p)
		}
		seen[p.Tool] = true
	}
	return list
}

// pinOfPrompt converts a prompt to a pin that can be accepted and shown.
func pinOfPrompt(p *sdk.Prompt) (modules.ToolPin, error) {
	d := promptDefinition{Name: p.Name, Title: visibleLine(p.Title, 256), Description: textutil.RemoveInvisible(p.Description)}
	if len(p.Arguments) > maxArguments {
		return modules.ToolPin{Tool: kindPrompt + "/" + p.Name}, fmt.Errorf("it has %d arguments, more than %d", len(p.Arguments), maxArguments)
	}
	names := []string{p.Name}
	for _, a := range p.Arguments {
		if a != nil {
			names = append(names, a.Name)
			d.Arguments = append(d.Arguments, promptArgument{a.Name, textutil.RemoveInvisible(a.Description), a.Required})
		}
	}
	return describedPin(kindPrompt, p.Name, d.Description, d, names...)
}

// pinOfTemplate converts a template to a pin that can be accepted and shown.
func pinOfTemplate(t *sdk.ResourceTemplate) (modules.ToolPin, error) {
	d := templateDefinition{
		URITemplate: t.URITemplate, Name: visibleLine(t.Name, 256), Title: visibleLine(t.Title, 256),
		Description: textutil.RemoveInvisible(t.Description), MIMEType: visibleLine(t.MIMEType, 128),
	}
	if len(t.URITemplate) > maxTemplate {
		return modules.ToolPin{Tool: kindTemplate}, fmt.Errorf("its URI template has %d bytes, more than %d", len(t.URITemplate), maxTemplate)
	}
	if !isPlainURI(t.URITemplate) {
		return modules.ToolPin{Tool: kindTemplate}, fmt.Errorf("its URI template contains white space or invisible characters")
	}
	return describedPin(kindTemplate, t.URITemplate, d.Description, d)
}

// describedPin returns the pin of a definition. names must be plain names.
func describedPin(kind, name, description string, definition any, names ...string) (modules.ToolPin, error) {
	p := modules.ToolPin{Tool: kind + "/" + name, Kind: kind, Description: cmp.Or(description, "A "+kind+" of the server.")}
	for _, n := range names {
		if n == "" || len(n) > tool.MaxName || n != visibleLine(n, tool.MaxName) {
			return p, fmt.Errorf("%q is no plain name of at most %d bytes", visibleLine(n, 40), tool.MaxName)
		}
	}
	text, err := json.Marshal(definition)
	if err != nil {
		return p, err
	}
	if p.Input = text; len(text) > maxDescription {
		return p, fmt.Errorf("its definition has %d bytes, more than %d", len(text), maxDescription)
	}
	return p, nil
}

// isPlainURI reports whether text is not empty and has no white space and no invisible
// characters.
func isPlainURI(text string) bool {
	return text != "" && !strings.ContainsAny(text, " \t\n") && text == textutil.RemoveInvisible(text)
}
