package config

// kind is a kind of document, in one spelling. A kind without read is not available in this version;
// if it has a hint, it is a kind of Toolbox that is not supported.
type kind struct {
	name    string
	read    func(docItem)
	current string // for another spelling of a kind: the kind
	hint    string
}

// kinds returns all kinds of documents. It is the only list of them.
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

		// The plural spelling of Toolbox's v2 form.
		{name: "sources", read: readSource, current: "source"},
		{name: "authServices", read: readAuthService, current: "authService"},
		{name: "tools", read: readTool, current: "tool"},
		{name: "toolsets", read: readToolset, current: "toolset"},
		{name: "prompts", read: readPrompt, current: "prompt"},

		// Kinds of Toolbox that are not supported.
		{name: "resource", hint: resourceHint},
		{name: "resourceTemplate", hint: resourceHint},
		{name: "embeddingModel", hint: embeddingHint},
		{name: "embeddingModels", hint: embeddingHint},
	}
}

const (
	resourceHint  = "resources of Toolbox are not supported; leave the document out"
	embeddingHint = "embedding models of Toolbox are not supported; leave out the document and the embeddedBy of parameters that name it"
)

// sections returns the top-level keys of Toolbox's v1 form, which has no kind, with
// the kind of the entries below each.
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

// kindNames returns the names of all kinds in all spellings, and the names of those
// that this version reads, each in the current spelling.
func kindNames() (all, now []string) {
	for _, k := range kinds() {
		all = append(all, k.name)
		if k.read != nil && k.current == "" {
			now = append(now, k.name)
		}
	}
	return all, now
}
