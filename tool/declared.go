package tool

import "encoding/json"

// Declared is how a tool's parameters were declared: what clients of MCP Toolbox
// are told of them, who read no schema of the gate's. Implementations are safe
// for concurrent use and never change.
type Declared interface {
	// Manifest lists the parameters as Toolbox's HTTP API does: a JSON array of
	// {"name","type","required","description","authServices","default"?,
	// "items"?,"additionalProperties"?}.
	Manifest() json.RawMessage
	// ClientSchema is a JSON schema whose properties have one type each. Claims
	// are properties too.
	ClientSchema() json.RawMessage
	// SecureSchema is the JSON schema of the secure arguments; nil is none.
	SecureSchema() json.RawMessage
}

// Services lists the auth services that may vouch for a caller, each once, in
// no order of weight; nil for a nil Auth.
func (a *Auth) Services() []string {
	if a == nil {
		return nil
	}
	var all []string
	seen := map[string]bool{"": true}
	add := func(names ...string) {
		for _, name := range names {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	add(a.AnyOf...)
	add(a.ScopesOf)
	for _, names := range a.Parameters {
		add(names...)
	}
	return all
}
