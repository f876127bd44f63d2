package config

// kind is a kind of document. One without read is in the contract and comes
// with a later version, or, with a hint, is Toolbox's and not served.
type kind struct {
	name    string
	read    func(docItem)
	current string // the kind it is another spelling of
	hint    string
}

// kinds is the one place that lists what a document can be.
func kinds() []kind {
	return []kind{
		{name: "organization", read: readOrganization},
		{name: "role", read: readRole},
		{name: "model", read: readModel},
		{name: "module", read: readModule},
		{name: "mcpServer", read: readMCPServer},
		{name: "command", read: readCommand},
		{name: "network", read: readNetwork},
		{name: "gateway", read: readGateway},

		{name: "source", read: readSource},
		{name: "authService", read: readAuthService},
		{name: "tool", read: readTool},
		{name: "toolset", read: readToolset},
		{name: "group", read: readGroup, current: "toolset"},
		{name: "prompt", read: readPrompt},

		{name: "toolService"},
		{name: "broker"},
		{name: "telemetry"},

		// Toolbox's plural spelling.
		{name: "sources", read: readSource, current: "source"},
		{name: "authServices", read: readAuthService, current: "authService"},
		{name: "tools", read: readTool, current: "tool"},
		{name: "toolsets", read: readToolset, current: "toolset"},
		{name: "prompts", read: readPrompt, current: "prompt"},

		// What Toolbox has beside these.
		{name: "resource", hint: resourceHint},
		{name: "resourceTemplate", hint: resourceHint},
		{name: "embeddingModel", hint: embeddingHint},
		{name: "embeddingModels", hint: embeddingHint},
	}
}

const (
	resourceHint  = "resources of Toolbox are not served; leave the document out"
	embeddingHint = "embedding models of Toolbox are not served; leave the document out, and embeddedBy of the parameters that name it"
)

// sections are the top keys of Toolbox's v1 form, which has no kind, with the
// kind of what is below them.
func sections() map[string]string {
	return map[string]string{
		"sources":         "source",
		"authServices":    "authService",
		"authSources":     "authService", // its older name
		"tools":           "tool",
		"toolsets":        "toolset",
		"prompts":         "prompt",
		"embeddingModels": "embeddingModel",
	}
}

// kindNames gives the names of all kinds, and of those that can be read, each
// in one spelling.
func kindNames() (all, now []string) {
	for _, k := range kinds() {
		all = append(all, k.name)
		if k.read != nil && k.current == "" {
			now = append(now, k.name)
		}
	}
	return all, now
}
