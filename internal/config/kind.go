package config

import "github.com/rolecall/rolecall/internal/yamldoc/docset"

// item is a document that a reader reads.
type item struct {
	docset.Item
	r *reader
}

// kinds returns the kinds of documents that this package reads. It is the only list of them.
// Package toolboxfile has the kinds of MCP Toolbox.
func (r *reader) kinds() []docset.Kind {
	with := func(read func(item)) func(docset.Item) { return func(it docset.Item) { read(item{it, r}) } }
	return []docset.Kind{
		{Name: "organization", Read: with(readOrganization)},
		{Name: "role", Read: with(readRole)},
		{Name: "model", Read: with(readModel)},
		{Name: "module", Read: with(readModule)},
		{Name: "mcpServer", Read: with(readMCPServer)},
		{Name: "command", Read: with(readCommand)},
		{Name: "network", Read: with(readNetwork)},
		{Name: "gateway", Read: with(readGateway)},
		{Name: "workspace", Read: with(readWorkspace)},
		{Name: "trigger", Read: with(readTrigger)},
		{Name: "broker", Read: with(readBroker)},
		{Name: "notification", Read: with(readNotification)},
		{Name: "oversight", Read: with(readOversight)},

		{Name: "telemetry"},
	}
}
