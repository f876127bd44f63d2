package main

import (
	"context"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// greeter is a module with the tool greet.
type greeter struct {
	name     string
	Greeting string `json:"greeting"` // "Hello" unless the settings have another
	greet    tool.Tool
}

type guest struct {
	Name string `json:"name" jsonschema:"name of the person"`
}

func newGreeter(c modules.Config) (modules.Module, error) {
	g := &greeter{name: c.Name, Greeting: "Hello"}
	if err := c.DecodeSettings(g); err != nil {
		return nil, err
	}
	var err error
	g.greet, err = tool.New("greet", "Greet a person by name.", func(_ context.Context, person guest) (string, error) {
		return g.Greeting + ", " + person.Name, nil
	}, &tool.Options{Effect: tool.ReadOnly, Flags: tool.FlagsOf()})
	return g, err
}

// Name implements modules.Module.
func (g *greeter) Name() string { return g.name }

// ToolGroups implements modules.Module.
func (g *greeter) ToolGroups() []toolgroups.Group {
	return []toolgroups.Group{{Tools: []tool.Tool{g.greet}}}
}

// Description implements modules.Describer.
func (g *greeter) Description() string { return "Greet people" }
