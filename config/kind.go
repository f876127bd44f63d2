package config

// kind is a kind of document. One without read is in the contract and comes
// with a later version.
type kind struct {
	name string
	read func(item)
}

// kinds is the one place that lists what a document can be.
func kinds() []kind {
	return []kind{
		{"organization", readOrganization},
		{"role", readRole},
		{"model", readModel},
		{"module", readModule},
		{"mcpServer", readMCPServer},
		{"command", readCommand},
		{"network", readNetwork},
		{"gateway", readGateway},

		{name: "source"},
		{name: "authService"},
		{name: "tool"},
		{name: "toolset"},
		{name: "group"},
		{name: "toolService"},
		{name: "broker"},
		{name: "telemetry"},

		// Toolbox's plural spelling.
		{name: "sources"},
		{name: "authServices"},
		{name: "tools"},
		{name: "toolsets"},
	}
}

// toolboxKeys are the top keys of Toolbox's v1 form, which has no kind.
func toolboxKeys() []string {
	return []string{"sources", "authServices", "authSources", "tools", "toolsets"}
}

// kindNames gives the names of all kinds, and of those that can be read.
func kindNames() (all, now []string) {
	for _, k := range kinds() {
		all = append(all, k.name)
		if k.read != nil {
			now = append(now, k.name)
		}
	}
	return all, now
}
