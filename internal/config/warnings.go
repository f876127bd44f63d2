package config

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/org/hosts"
)

// ListWarnings returns warnings about declared tools and about models.
func (c *Config) ListWarnings() []string {
	return slices.Concat(c.Declarations.ListWarnings(c.serverLabels()...), c.windowWarnings())
}

// serverLabels lists the labels of the tools of MCP servers and modules.
func (c *Config) serverLabels() (list []toolboxfile.StateLabels) {
	for _, s := range c.MCPServers {
		list = append(list, toolboxfile.StateLabels{What: "mcpServer " + s.Name, Labels: s.Labels, Pos: s.Pos})
	}
	for _, m := range c.Modules {
		list = append(list, toolboxfile.StateLabels{What: "module " + m.Name, Labels: m.Labels, Pos: m.Pos})
	}
	return list
}

// windowWarnings reports models on this machine without a context window. Such servers are
// often set to a small one, and some cut longer conversations without an error.
func (c *Config) windowWarnings() (list []string) {
	for _, m := range c.Models {
		if m.ContextWindow == 0 && isLoopback(m.BaseURL) {
			list = append(list, fmt.Sprintf("model %q has no contextWindow and is on this machine: a server that is set to a smaller one than assumed may cut conversations; \"rolecall model test %s\" asks it", m.Name, m.Name))
		}
	}
	return list
}

// isLoopback reports whether an address is on this machine.
func isLoopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && hosts.IsLoopback(u.Hostname())
}
